// Files made to break readers, through the commands: exit code 65, one line that names the file and
// the tensor (or key) at fault, nothing written, little memory. What each reader refuses in detail
// is in tests/formats, tests/ir and tests/data_floor.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/places.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace loongforge::test {
namespace {

namespace fs = std::filesystem;
using Says = std::vector<std::string_view>;  // parts of the line

std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}
void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

template <class T>
std::string le(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string repeated(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

// Replaces the first occurrence; the test is wrong where there is none.
std::string changed(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

// The carried model; each case changes a copy.
struct Victim {
  TempDir dir;
  fs::path model = dir / "model";
  Victim() {
    fs::copy(source_dir() / "scripts" / "quickstart" / "tiny_model", model,
             fs::copy_options::recursive);
  }

  std::string header() const {
    const std::string file = slurp(model / "model.safetensors");
    uint64_t size = 0;
    std::copy_n(file.data(), 8, reinterpret_cast<char*>(&size));
    return file.substr(8, size);
  }
  std::string data() const {
    const std::string file = slurp(model / "model.safetensors");
    return file.substr(8 + header().size());
  }
  void put(const std::string& header, const std::string& data) const {
    write(model / "model.safetensors", le<uint64_t>(header.size()) + header + data);
  }
  void edit_header(std::string_view from, std::string_view to) const {
    const std::string old = header(), rest = data();
    put(changed(old, from, to), rest);
  }
};

constexpr bool kSanitized =
#ifdef __SANITIZE_ADDRESS__
    true;
#else
    false;
#endif

// words end in exit code 65 and one line with every part of `says`; `absent` is not there
// afterwards. The program has 1 GB of address space: more than it needs, less than what the files
// claim to hold.
void refuse(const std::string& command, const std::vector<std::string>& words, const Says& says,
            const fs::path& absent) {
  std::string line = kSanitized ? "" : "ulimit -v 1000000; ";
  line += "exec \"$0\" \"$@\"";
  Launch launch{{"/bin/bash", "-c", line, program("loongforge-" + command)},
                {{"LOONGFORGE_THREADS", "1"}}};
  launch.words.insert(launch.words.end(), words.begin(), words.end());
  const Outcome o = run(launch);
  CAPTURE(o.err);
  CHECK(o.code == 65);
  CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
  CHECK(o.err.starts_with("loongforge " + command + ": "));
  CHECK(o.err.size() < 1000);
  for (const std::string_view part : says)
    CHECK_MESSAGE(o.err.find(part) != std::string::npos, "the line lacks " << part);
  CHECK_FALSE(fs::exists(fs::symlink_status(absent)));
}

void refuse_convert(const Victim& victim, const Says& says) {
  refuse("convert",
         {"--input-path", victim.model.string(), "--output-path", (victim.dir / "out").string()},
         says, victim.dir / "out");
  CHECK(victim.dir.entries() == 1);  // no temporary folder either
}

using Change = std::function<void(const Victim&)>;

constexpr std::string_view kNorm = "\"model.norm.weight\"";

TEST_CASE("hostile safetensors files") {
  const std::map<const char*, std::pair<Change, Says>> cases = {
      {"empty file",
       {[](const Victim& v) { write(v.model / "model.safetensors", ""); }, {"model.safetensors"}}},
      {"header longer than the file",
       {[](const Victim& v) { write(v.model / "model.safetensors", le<uint64_t>(1000) + "{}"); },
        {"model.safetensors"}}},
      {"header of 2^63 bytes",
       {[](const Victim& v) {
          write(v.model / "model.safetensors", le<uint64_t>(uint64_t{1} << 63) + "{}");
        },
        {"model.safetensors"}}},
      {"header that is a million brackets",
       {[](const Victim& v) { v.put("{\"a\":" + repeated("[", 1'000'000), ""); },
        {"model.safetensors", "nest"}}},
      {"a name that stands twice",
       {[](const Victim& v) {
          v.put(changed(v.header(), kNorm, "\"model.embed_tokens.weight\""), v.data());
        },
        {"model.safetensors", "model.embed_tokens.weight"}}},
      {"a shape whose product overflows",
       {[](const Victim& v) {
          const std::string old = v.header();
          const size_t at = old.find("\"shape\":[", old.find(kNorm)) + 9;
          v.put(std::string(old).replace(at, old.find(']', at) - at, "4294967296,4294967296"),
                v.data());
        },
        {"model.safetensors", "model.norm.weight"}}},
      {"the last bytes lack",
       {[](const Victim& v) { v.put(v.header(), v.data().substr(0, v.data().size() - 1)); },
        {"model.safetensors"}}},
      {"bytes that no tensor has",
       {[](const Victim& v) { v.put(v.header(), v.data() + "x"); }, {"model.safetensors"}}},
      {"an element type that is none",
       {[](const Victim& v) { v.edit_header("\"BF16\"", "\"BF17\""); },
        {"model.safetensors", "BF17"}}},
  };
  for (const auto& [name, attack] : cases) {
    CAPTURE(name);
    const Victim victim;
    attack.first(victim);
    refuse_convert(victim, attack.second);
  }
}

TEST_CASE("hostile safetensors tables: overlaps, holes, offsets that run backwards") {
  for (const char* offsets :
       {"[0,8]", "[9223372036854775807,9223372036854775808]", "[-1,7]", "[8,0]"}) {
    CAPTURE(offsets);
    const Victim victim;
    const std::string old = victim.header();
    const size_t at = old.find("\"data_offsets\":", old.find(kNorm)) + 15;
    victim.put(std::string(old).replace(at, old.find(']', at) + 1 - at, offsets), victim.data());
    refuse_convert(victim, {"model.safetensors"});
  }
}

// The model in two shards with an index.
void shard(const Victim& victim, const std::string& first, const std::string& second) {
  const std::string small = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
  fs::rename(victim.model / "model.safetensors", victim.model / "model-00001-of-00002.safetensors");
  write(victim.model / "model-00002-of-00002.safetensors",
        le<uint64_t>(small.size()) + small + le<float>(1));
  write(victim.model / "model.safetensors.index.json",
        "{\"metadata\":{},\"weight_map\":{\"model.norm.weight\":\"" + first + "\",\"a\":\"" +
            second + "\"}}");
}

TEST_CASE("hostile indices: paths that leave the folder, shards that are absent or cut") {
  const std::string one = "model-00001-of-00002.safetensors",
                    two = "model-00002-of-00002.safetensors";
  struct Case {
    std::string first, second;
    Says says;
  };
  const Case cases[] = {
      {"../../../../etc/passwd", two, {"index.json", "../../../../etc/passwd"}},
      {"/etc/passwd", two, {"index.json", "/etc/passwd"}},
      {"..", two, {"index.json"}},
      {"", two, {"index.json"}},
      {one, "model-00003-of-00002.safetensors", {"model-00003-of-00002.safetensors"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.first);
    const Victim victim;
    shard(victim, c.first, c.second);
    refuse_convert(victim, c.says);
  }
  const Victim cut;
  shard(cut, one, two);
  const std::string last = slurp(cut.model / two);
  write(cut.model / two, last.substr(0, last.size() - 2));
  refuse_convert(cut, {two});
  const Victim lies;  // the shard does not hold what the map says
  shard(lies, two, two);
  refuse_convert(lies, {"model.norm.weight"});
}

TEST_CASE("hostile config.json") {
  const std::map<std::string, std::string_view> cases = {
      {repeated("[", 100'000), "nest"},
      {"{\"model_type\":\"llama\",\"model_type\":\"qwen2\"}", "model_type"},
      {"{\"model_type\":[\"llama\"]}", "model_type"},
      {"", "config.json"},
      {std::string("\xFF\xFE{\0}\0", 6), "config.json"},
  };
  for (const auto& [text, says] : cases) {
    CAPTURE(text.substr(0, 60));
    const Victim victim;
    write(victim.model / "config.json", text);
    refuse_convert(victim, {"config.json", says});
  }
  const Victim evil;
  write(evil.model / "config.json",
        changed(slurp(evil.model / "config.json"), "\"model_type\": \"llama\"",
                "\"model_type\": \"../../evil\""));
  refuse_convert(evil, {"config.json", "../../evil"});
  for (const char* layers : {"1e300", "9000000000000000000", "1000000000", "-1", "0"}) {
    CAPTURE(layers);
    const Victim victim;
    std::string config = slurp(victim.model / "config.json");
    const size_t at = config.find(':', config.find("\"num_hidden_layers\"")) + 1;
    write(victim.model / "config.json",
          config.replace(at, config.find_first_of(",}", at) - at, layers));
    refuse_convert(victim, {"model"});
  }
}

std::string gguf_string(std::string_view text) {
  return le<uint64_t>(text.size()) + std::string(text);
}

TEST_CASE("hostile GGUF files") {
  const auto head = [](uint64_t tensors, uint64_t keys) {
    return "GGUF" + le<uint32_t>(3) + le<uint64_t>(tensors) + le<uint64_t>(keys);
  };
  const auto tensor = [](std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                         uint64_t offset) {
    std::string out = gguf_string(name) + le<uint32_t>(static_cast<uint32_t>(dims.size()));
    for (const uint64_t d : dims) out += le(d);
    return out + le(type) + le(offset);
  };
  constexpr uint64_t kHuge = uint64_t{1} << 60;
  const std::map<const char*, std::pair<std::string, std::string_view>> cases = {
      {"2^60 tensors", {head(kHuge, 0), "x.gguf"}},
      {"2^60 keys", {head(0, kHuge), "x.gguf"}},
      {"a key of 2^60 bytes", {head(0, 1) + le(kHuge) + "a", "x.gguf"}},
      {"an array of 2^60 texts",
       {head(0, 1) + gguf_string("k") + le<uint32_t>(9) + le<uint32_t>(8) + le(kHuge), "k"}},
      {"arrays in arrays, a thousand deep",
       {head(0, 1) + gguf_string("k") + le<uint32_t>(9) +
            repeated(le<uint32_t>(9) + le<uint64_t>(1), 1000),
        "k"}},
      {"dimensions whose product overflows",
       {head(1, 0) + tensor("t.weight", {kHuge, kHuge}, 0, 0) + std::string(64, '\0'), "t.weight"}},
      {"data beyond the end",
       {head(1, 0) + tensor("t.weight", {64}, 0, 1 << 20) + std::string(64, '\0'), "t.weight"}},
      {"an offset that is not aligned",
       {head(1, 0) + tensor("t.weight", {2}, 0, 4) + std::string(99, '\0'), "t.weight"}},
      {"a type that is none",
       {head(1, 0) + tensor("t.weight", {32}, 9999, 0) + std::string(64, '\0'), "t.weight"}},
      {"five dimensions",
       {head(1, 0) + tensor("t.weight", {1, 1, 1, 1, 1}, 0, 0) + std::string(64, '\0'),
        "t.weight"}},
  };
  for (const auto& [name, attack] : cases) {
    CAPTURE(name);
    const TempDir dir;
    write(dir / "x.gguf", attack.first);
    refuse("convert",
           {"--input-path", (dir / "x.gguf").string(), "--output-path", (dir / "out").string()},
           {"x.gguf", attack.second}, dir / "out");
    CHECK(dir.entries() == 1);
  }
}

// A zip of one stored entry, as torch writes it.
std::string zip_of(const std::string& name, const std::string& bytes, uint16_t method = 0,
                   uint32_t claimed = 0) {
  const auto size = static_cast<uint32_t>(bytes.size()), full = claimed != 0 ? claimed : size;
  const auto fields = [&] {
    return le<uint16_t>(0) + le(method) + le<uint32_t>(0) + le<uint32_t>(0) + le(size) + le(full) +
           le(static_cast<uint16_t>(name.size())) + le<uint16_t>(0);
  };
  const std::string local = "PK\x03\x04" + le<uint16_t>(20) + fields() + name + bytes;
  const std::string central = "PK\x01\x02" + le<uint16_t>(20) + le<uint16_t>(20) + fields() +
                              le<uint16_t>(0) + le<uint16_t>(0) + le<uint16_t>(0) +
                              le<uint32_t>(0) + le<uint32_t>(0) + name;
  return local + central + "PK\x05\x06" + le<uint32_t>(0) + le<uint16_t>(1) + le<uint16_t>(1) +
         le(static_cast<uint32_t>(central.size())) + le(static_cast<uint32_t>(local.size())) +
         le<uint16_t>(0);
}

TEST_CASE("hostile torch files: nothing in them is run") {
  const TempDir marks;
  const std::string mark = (marks / "was_run").string();
  const std::string command = "touch " + mark;
  const std::string text = "X" + le(static_cast<uint32_t>(command.size())) + command;  // BINUNICODE
  const std::map<const char*, std::pair<std::string, std::string_view>> cases = {
      {"os.system",
       {zip_of("m/data.pkl",
               "\x80\x02"
               "cos\nsystem\n" +
                   text + "\x85R."),
        "os.system"}},
      {"builtins.eval",
       {zip_of("m/data.pkl",
               "\x80\x02"
               "c__builtin__\neval\n" +
                   text + "\x85R."),
        "__builtin__.eval"}},
      {"an opcode that is not known", {zip_of("m/data.pkl", "\x80\x02i."), "data.pkl"}},
      {"tuples, a million deep",
       {zip_of("m/data.pkl", "\x80\x02)" + std::string(1'000'000, '\x85') + "."),
        "pytorch_model.bin"}},
      {"a stack that is empty", {zip_of("m/data.pkl", "\x80\x02R."), "pytorch_model.bin"}},
      {"a compressed entry that claims 4 GB",
       {zip_of("m/data.pkl", "abc", 8, 0xFFFFFFF0u), "compressed"}},
      {"the old format",
       {"\x80\x02\x8a\x0al\xfc\x9c"
        "F\xf9 j\xa8P\x19.",
        "pytorch_model.bin"}},
      {"a web page", {"<html>404 Not Found</html>", "pytorch_model.bin"}},
  };
  for (const auto& [name, attack] : cases) {
    CAPTURE(name);
    const Victim victim;
    fs::remove(victim.model / "model.safetensors");
    write(victim.model / "pytorch_model.bin", attack.first);
    refuse_convert(victim, {"pytorch_model.bin", attack.second});
    CHECK_FALSE(fs::exists(mark));
  }
}

TEST_CASE("hostile tokenizers and templates") {
  const std::map<std::string, std::string_view> cases = {
      {"", "tokenizer.json"},
      {repeated("{\"a\":", 100'000), "nest"},
      {R"({"model":{"type":"BPE","vocab":{"a":0,"a":1},"merges":[]}})", "\"a\""},
      {R"({"pre_tokenizer":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":9000000000000000000},"merges":[]}})",
       "9000000000000000000"},
      {R"({"pre_tokenizer":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":0},"merges":["a zz"]}})",
       "zz"},
      {R"({"pre_tokenizer":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":[0],"merges":[]}})",
       "vocab"},
  };
  for (const auto& [text, says] : cases) {
    CAPTURE(text.substr(0, 80));
    const Victim victim;
    write(victim.model / "tokenizer.json", text);
    refuse_convert(victim, {"tokenizer.json", says});
  }
}

// A LoongIR folder of the carried model, made once.
const fs::path& converted() {
  static const TempDir dir;
  static const fs::path path = [] {
    const fs::path out = dir / "ir";
    const Outcome o = run({{program("loongforge-convert"), "--input-path",
                            (source_dir() / "scripts" / "quickstart" / "tiny_model").string(),
                            "--output-path", out.string()}});
    REQUIRE_MESSAGE(o.code == 0, o.err);
    return out;
  }();
  return path;
}

TEST_CASE("hostile LoongIR folders") {
  const std::string name = "loongir_model.json";
  const std::string good = slurp(converted() / name);
  const auto number_of = [&](const char* key, const char* value) {  // of the first tensor
    const size_t at = good.find(std::string("\"") + key + "\":", good.find("\"tensors\"")) +
                      std::string(key).size() + 3;
    REQUIRE(at < good.size());
    return std::string(good).replace(at, good.find_first_of(",}\n", at) - at, value);
  };
  const std::map<const char*, std::string> cases = {
      {"empty", ""},
      {"deep", repeated("{\"a\":", 100'000)},
      {"offset beyond the file", number_of("offset", "9007199254740992")},
      {"an offset that overflows", number_of("offset", "9223372036854775807")},
      {"bytes that overflow", number_of("bytes", "9223372036854775807")},
      {"negative bytes", number_of("bytes", "-1")},
      {"a file elsewhere", changed(good, "\"weights-", "\"../../weights-")},
      {"a newer format", changed(good, "\"format_version\": \"1.", "\"format_version\": \"9.")},
  };
  for (const auto& [attack, text] : cases) {
    CAPTURE(attack);
    const TempDir dir;
    fs::copy(converted(), dir / "ir", fs::copy_options::recursive);
    write(dir / "ir" / name, text);
    refuse("convert",
           {"--export", "hf", "--input-path", (dir / "ir").string(), "--output-path",
            (dir / "out").string()},
           {"ir"}, dir / "out");
    refuse("train",
           {"--model_path", (dir / "ir").string(), "--dataset",
            (source_dir() / "scripts" / "quickstart" / "records.jsonl").string(), "--output_dir",
            (dir / "run").string()},
           {"ir"}, dir / "run");
    CHECK(dir.entries() == 1);
  }
}

TEST_CASE("inputs are read through symbolic links, outputs are not written through them") {
  const Victim victim;
  const fs::path blobs = victim.dir / "blobs";  // as Hugging Face's cache has it
  fs::create_directory(blobs);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(victim.model)) files.push_back(entry.path());
  for (const fs::path& file : files) {
    fs::rename(file, blobs / file.filename());
    fs::create_symlink(blobs / file.filename(), file);
  }
  const auto convert = [&](const fs::path& out) {
    return run({{program("loongforge-convert"), "--overwrite", "--input-path",
                 victim.model.string(), "--output-path", out.string()}});
  };
  CHECK(convert(victim.dir / "out").code == 0);
  CHECK(fs::exists(victim.dir / "out" / "loongir_model.json"));

  const fs::path precious = victim.dir / "precious", link = victim.dir / "link";
  fs::create_directory(precious);
  write(precious / "kept", "kept");
  fs::create_directory_symlink(precious, link);
  const Outcome refused = convert(link);
  CHECK(refused.code == 2);
  CAPTURE(refused.err);
  CHECK(refused.err.find("is a symbolic link") != std::string::npos);
  CHECK(slurp(precious / "kept") == "kept");
  CHECK(std::distance(fs::directory_iterator(precious), fs::directory_iterator()) == 1);
}

}  // namespace
}  // namespace loongforge::test

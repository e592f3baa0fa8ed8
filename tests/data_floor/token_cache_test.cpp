#include "data/token_cache.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/log.h"
#include "data_floor/small_tokenizer.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

namespace fs = std::filesystem;
using support::Json;
using test::make_tokenizer;
using test::TempDir;
using test::write_file;

std::vector<std::string> warnings;

struct Warnings {
  Warnings() {
    warnings.clear();
    set_log_sink([](LogLevel level, std::string_view text) {
      if (level == LogLevel::kWarning) warnings.emplace_back(text);
    });
  }
  ~Warnings() { set_log_sink(nullptr); }
};

constexpr const char* kRecords =
    "{\"instruction\":\"i\",\"output\":\"one\"}\n"
    "{\"instruction\":\"a longer question\",\"output\":\"two\",\"history\":[[\"q\",\"a\"]]}\n";

struct Place {
  TempDir dir;
  Tokenizer tokenizer = make_tokenizer();
  DatasetOptions options{.path_or_name = (dir / "data.jsonl").string(),
                         .cutoff_len = 100,
                         .token_cache = (dir / "cache").string(),
                         .tokenizer_id = "small"};
  explicit Place(const std::string& text = kRecords) { write_file(dir / "data.jsonl", text); }
  Dataset load() const { return Dataset::load(options, tokenizer); }
  fs::path entry() const {
    std::vector<fs::path> found;
    for (const auto& e : fs::directory_iterator(options.token_cache)) found.push_back(e.path());
    REQUIRE(found.size() == 1);
    return found[0];
  }
};

void check_same(const Dataset& a, const Dataset& b) {
  REQUIRE(a.samples().size() == b.samples().size());
  for (size_t i = 0; i < a.samples().size(); ++i) {
    CHECK(a.sample(i).ids == b.sample(i).ids);
    CHECK(a.sample(i).trained == b.sample(i).trained);
    CHECK(a.sample(i).line == b.sample(i).line);
  }
  CHECK(a.counts().samples == b.counts().samples);
  CHECK(a.counts().tokens == b.counts().tokens);
  CHECK(a.counts().trained_tokens == b.counts().trained_tokens);
  CHECK(a.counts().prompts_cut == b.counts().prompts_cut);
  CHECK(a.counts().answers_cut == b.counts().answers_cut);
  CHECK(a.content_hash() == b.content_hash());
}

TEST_CASE("a second load takes the cache: the same samples and counts") {
  const Warnings none;
  Place place;
  const Dataset first = place.load(), second = place.load();
  CHECK_FALSE(first.from_cache());
  CHECK(second.from_cache());
  check_same(first, second);
  DatasetOptions plain = place.options;
  plain.token_cache.clear();
  check_same(Dataset::load(plain, place.tokenizer), second);
  CHECK(second.counts().prompts_cut + second.counts().answers_cut == 2);
  CHECK(place.entry().filename().string().starts_with("data-"));
  CHECK(warnings.empty());
  // The file holds LoongIR ids: even ones.
  const std::string tokens = test::read_file(place.entry() / "tokens.bin");
  int32_t id = 0;
  std::memcpy(&id, tokens.data(), 4);
  CHECK(id == 2 * first.sample(0).ids[0]);
}

TEST_CASE("whatever decides the samples is a key of its own; a file's name and place are not") {
  Place place;
  place.load();
  const auto misses = [&](const std::function<void(DatasetOptions&)>& change) {
    DatasetOptions o = place.options;
    change(o);
    CHECK_FALSE(Dataset::load(o, place.tokenizer).from_cache());
    CHECK(Dataset::load(o, place.tokenizer).from_cache());
  };
  misses([](DatasetOptions& o) { o.cutoff_len = 101; });
  misses([](DatasetOptions& o) { o.max_samples = 1; });
  misses([](DatasetOptions& o) { o.train_on_prompt = true; });
  misses([](DatasetOptions& o) { o.mask_history = true; });
  misses([](DatasetOptions& o) { o.text_chunks = TextChunks::kLine; });
  misses([](DatasetOptions& o) { o.tokenizer_id = "another"; });
  const ChatTemplate a = test::make_chat(test::kChatMl);
  const ChatTemplate b = test::make_chat(std::string(test::kChatMl) + "{# #}");
  misses([&](DatasetOptions& o) { o.style.chat = &a; });
  misses([&](DatasetOptions& o) { o.style.chat = &b; });
  fs::create_directory(place.dir / "sub");
  fs::rename(place.dir / "data.jsonl", place.dir / "sub" / "data.jsonl");
  place.options.path_or_name = (place.dir / "sub" / "data.jsonl").string();
  CHECK(place.load().from_cache());
  std::string other = kRecords;
  other[16] ^= 1;  // a letter of the question
  write_file(place.options.path_or_name, other);
  CHECK_FALSE(place.load().from_cache());
  write_file(place.options.path_or_name, kRecords);
  CHECK(place.load().from_cache());
}

TEST_CASE("a broken cache is told, made anew, and never believed") {
  for (const char* name : {"tokens.bin", "index.bin", "cache.json"}) {
    for (const bool cut : {true, false}) {
      CAPTURE(name);
      CAPTURE(cut);
      Place place;
      const Dataset good = place.load();
      const fs::path file = place.entry() / name;
      std::string bytes = test::read_file(file);
      if (cut)
        bytes.resize(bytes.size() - 3);
      else
        bytes[bytes.size() / 2] ^= 4;
      fs::remove(file);
      write_file(file, bytes);
      const Warnings kept;
      const Dataset again = place.load();
      CHECK_FALSE(again.from_cache());
      check_same(good, again);
      REQUIRE(warnings.size() == 1);
      CHECK(warnings[0].find("the token cache is made anew: ") != std::string::npos);
      CHECK(place.load().from_cache());
      CHECK(warnings.size() == 1);
    }
  }
}

// Writes other numbers over one file, with checksums that fit.
void forge(const fs::path& entry, const char* name, const char* key, size_t at, int32_t value) {
  std::string bytes = test::read_file(entry / name);
  std::memcpy(bytes.data() + at, &value, sizeof value);
  fs::remove(entry / name);
  write_file(entry / name, bytes);
  Json description = support::read_json((entry / "cache.json").string());
  description.find(key)->set("crc32c", static_cast<int64_t>(crc32c(test::bytes_of(bytes))));
  fs::remove(entry / "cache.json");
  write_file(entry / "cache.json", description.dump());
}

TEST_CASE("a cache that lies with the right checksums is found out") {
  struct Lie {
    const char *name, *key;
    size_t at;
    int32_t value;
    const char* says;
  };
  for (const Lie& lie : {Lie{"tokens.bin", "tokens_file", 0, 7, "does not have"},
                         Lie{"tokens.bin", "tokens_file", 4, 2 * 261, "does not have"},
                         Lie{"tokens.bin", "tokens_file", 4, -2, "does not have"},
                         Lie{"index.bin", "index_file", 0, 4, "does not fit"},
                         Lie{"index.bin", "index_file", 8, 1 << 30, "does not fit"},
                         Lie{"index.bin", "index_file", 8, 0, "does not fit"},
                         Lie{"index.bin", "index_file", 12, 1 << 20, "does not fit"},
                         Lie{"index.bin", "index_file", 24, 1, "does not fit"},
                         Lie{"index.bin", "index_file", 32, 1, "does not fit"}}) {
    CAPTURE(lie.at);
    Place place;
    const Dataset good = place.load();
    forge(place.entry(), lie.name, lie.key, lie.at, lie.value);
    const Warnings kept;
    const Dataset again = place.load();
    CHECK_FALSE(again.from_cache());
    check_same(good, again);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find(lie.says) != std::string::npos);
  }
}

TEST_CASE("another's cache under this name is not taken") {
  Place place;
  place.load();
  const fs::path mine = place.entry();
  Json description = support::read_json((mine / "cache.json").string());
  description.find("key")->set("cutoff_len", 7);
  fs::remove(mine / "cache.json");
  write_file(mine / "cache.json", description.dump());
  const Warnings kept;
  CHECK_FALSE(place.load().from_cache());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("belongs to another dataset") != std::string::npos);
}

TEST_CASE("where nothing can be written the samples stay in memory, and a line says so") {
  Place place;
  write_file(place.dir / "file", "x");
  place.options.token_cache = (place.dir / "file").string();
  const Warnings kept;
  CHECK(place.load().samples().size() == 2);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("kept in memory only") != std::string::npos);
  // A folder that is no cache is not replaced either.
  Place other;
  other.load();
  const fs::path entry = other.entry();
  fs::remove(entry / "cache.json");
  write_file(entry / "thesis.txt", "x");
  CHECK_FALSE(other.load().from_cache());
  CHECK(fs::exists(entry / "thesis.txt"));
  CHECK(warnings.size() == 2);
}

TEST_CASE("wrong data leaves no cache behind; small files are not worth one") {
  Place place(std::string(kRecords) + "{\"instruction\":7}\n");
  LF_CHECK_ERROR(place.load(), ErrorCode::kBadData, "data.jsonl:3: ");
  CHECK((!fs::exists(place.options.token_cache) || fs::is_empty(place.options.token_cache)));
  Place small;
  small.options.token_cache_from = 1000;
  CHECK(small.load().samples().size() == 2);
  CHECK_FALSE(fs::exists(small.options.token_cache));
}

TEST_CASE("the default place follows XDG_CACHE_HOME, then HOME") {
  const auto read = [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  const std::string cache = read("XDG_CACHE_HOME"), home = read("HOME");
  setenv("XDG_CACHE_HOME", "/c", 1);
  CHECK(default_token_cache() == "/c/loongforge/tokens");
  setenv("XDG_CACHE_HOME", "relative", 1);  // not valid, says the specification
  setenv("HOME", "/h", 1);
  CHECK(default_token_cache() == "/h/.cache/loongforge/tokens");
  unsetenv("HOME");
  CHECK(default_token_cache().empty());
  if (cache.empty())
    unsetenv("XDG_CACHE_HOME");
  else
    setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

TEST_CASE("a tokenizer's fingerprint follows every file of it") {
  const TempDir dir;
  write_file(dir / "tokenizer.json", "{}");
  const std::string one = tokenizer_fingerprint(dir.path().string());
  CHECK(tokenizer_fingerprint(dir.path().string()) == one);
  write_file(dir / "generation_config.json", "{}");
  const std::string two = tokenizer_fingerprint(dir.path().string());
  CHECK(two != one);
  write_file(dir / "tokenizer.json", "{ }");
  CHECK(tokenizer_fingerprint(dir.path().string()) != two);
}

}  // namespace
}  // namespace loongforge::data

#include "convert/paths.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "base/paths.h"
#include "convert/export.h"
#include "ir/layout.h"
#include "support/printable.h"
#include "support/unicode.h"

namespace loongforge::convert {
namespace {

namespace fs = std::filesystem;

// "<stem>-00001-of-00003<extension>"
bool is_numbered(std::string_view name, std::string_view stem, std::string_view extension) {
  if (!name.starts_with(stem) || !name.ends_with(extension)) return false;
  if (name.size() < stem.size() + extension.size()) return false;
  name = name.substr(stem.size(), name.size() - stem.size() - extension.size());
  const auto number = [&name](std::string_view before) {
    if (!name.starts_with(before)) return false;
    name.remove_prefix(before.size());
    const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(digits);
    return digits >= 5;
  };
  return number("-") && number("-of-") && name.empty();
}

std::string_view marker_of(OutputKind kind) {
  switch (kind) {
    case OutputKind::kLoongIr:
      return ir::kModelFile;
    case OutputKind::kHuggingFace:
      return "config.json";
    case OutputKind::kPeft:
      break;
  }
  return "adapter_config.json";
}

bool is_weight_file(OutputKind kind, std::string_view name) {
  switch (kind) {
    case OutputKind::kLoongIr:
      return is_numbered(name, "weights", ".lir");
    case OutputKind::kHuggingFace:
      return name == "model.safetensors" || name == "model.safetensors.index.json" ||
             is_numbered(name, "model", ".safetensors");
    case OutputKind::kPeft:
      break;
  }
  return name == "adapter_model.safetensors";
}

// The first entry that no output of this kind has, as it is named within it; empty: there is none.
std::string foreign_entry(const fs::path& folder, OutputKind kind) {
  const auto ours = [kind](const std::string& name) {
    return name == marker_of(kind) || name == "generation_config.json" ||
           is_weight_file(kind, name) || data::is_tokenizer_file(name);
  };
  for (const fs::path& entry : folder_entries(folder, ErrorCode::kFailed)) {
    const std::string name = entry.filename().string();
    if (!folder_exists(entry, ErrorCode::kFailed)) {
      if (!ours(name) && name != ".DS_Store") return name;  // which a file manager leaves
      continue;
    }
    if (link_exists(entry, ErrorCode::kFailed) || name != "additional_chat_templates")
      return name + "/";
    for (const fs::path& inner : folder_entries(entry, ErrorCode::kFailed))
      if (std::string path = name + "/" + inner.filename().string(); !ours(path)) return path;
  }
  return {};
}

// What to do about a path that holds something else than an export takes.
std::string hint_instead(const fs::path& path, std::string_view name) {
  constexpr const char* kAdapter = "adapter_config.json";
  if (name == kAdapter)
    return path_exists(path / ir::kModelFile)
               ? "it is a model: name the output folder or a checkpoint of a run that trained LoRA"
               : "";
  for (const fs::path& folder : {path, path / "latest"})
    if (path_exists(folder / kAdapter))
      return "it is an adapter: name the model it belongs to as --input-path with --adapter " +
             folder.string() + " --merge, or use --export peft";
  const bool source = path.extension() == ".gguf" || path_exists(path / "config.json");
  return source ? "it was not converted yet: leave --export out to make LoongIR of it first" : "";
}

}  // namespace

fs::path folder_with(const fs::path& path, std::string_view name, std::string_view what) {
  if (path_exists(path / name)) return path;
  if (!path_exists(path)) throw_absent(path.string());
  std::vector<fs::path> found;
  if (folder_exists(path)) {
    for (const fs::path& entry : folder_entries(path))
      if (!link_exists(entry) && folder_exists(entry) && path_exists(entry / name))
        found.push_back(entry);
  }
  if (found.size() == 1) return found[0];
  if (found.empty())
    throw_no_input(path.string(), "holds no " + std::string(what) + " (" + std::string(name) + ")",
                   hint_instead(path, name));
  // A run's folder: its newest checkpoint is what is meant most often.
  const fs::path latest = path / "latest";
  throw_no_input(path.string(), "holds more than one " + std::string(what),
                 "name one of them, for instance " +
                     (path_exists(latest / name) ? latest : found.back()).string());
}

void guard_place(const fs::path& output, std::span<const fs::path> inputs) {
  if (output.empty()) throw_usage("the output path is empty");
  if (support::find_invalid_utf8(output.string()) != std::string::npos)
    throw_usage("the output path " + support::printable(output.string(), 200) + " is not UTF-8",
                "give another output path");
  const char* hint = "give another output path";
  refuse_tilde("the output", output);
  for (const fs::path& input : inputs) {
    if (input.empty() || !path_exists(input)) continue;  // what reads it says so
    if (is_inside(input, output))
      throw_usage("the output " + output.string() + " is or contains the input " + input.string(),
                  hint);
    if (is_inside(output, input))
      throw_usage("the output " + output.string() + " is inside the input " + input.string(), hint);
  }
  for (fs::path at = absolute_path(output).parent_path();; at = at.parent_path()) {
    // The second: of a checkpoint, whatever it trains.
    for (const std::string_view marker : {ir::kModelFile, std::string_view("trainer_state.json")})
      if (path_exists(at / marker, ErrorCode::kFailed))
        throw_usage("the output " + output.string() + " is inside " + at.string() +
                        ", which holds a model (" + std::string(marker) + ")",
                    hint);
    if (!at.has_relative_path()) return;
  }
}

void guard_output(const fs::path& output, std::span<const fs::path> inputs, bool overwrite,
                  OutputKind kind) {
  guard_place(output, inputs);
  if (output.extension() == ".gguf")
    throw_usage("the output " + output.string() + " is to be a folder, its name is a GGUF file's",
                "--export gguf makes such a file; or give another output path");
  if (!entry_exists(output, ErrorCode::kFailed)) return;
  if (link_exists(output, ErrorCode::kFailed))
    throw_usage(output.string() + " is a symbolic link", "name the folder itself");
  if (!overwrite)
    throw_usage(output.string() + " exists",
                "give another output path, or --overwrite to replace it");
  if (!folder_exists(output, ErrorCode::kFailed))
    throw_usage(output.string() + " is no folder", "give another output path");
  if (folder_entries(output, ErrorCode::kFailed).empty()) return;
  if (!path_exists(output / marker_of(kind), ErrorCode::kFailed))
    throw_usage(output.string() + " is no earlier output of this command, so it is not replaced",
                "remove it yourself, or give another output path");
  const std::string foreign = foreign_entry(output, kind);
  if (!foreign.empty())
    throw_usage(output.string() + " holds " + foreign +
                    ", which convert did not write, so it is not replaced",
                "move that away, or give another output path");
}

uint64_t bytes_beside_weights(const fs::path& model) {
  uint64_t bytes = 0;
  for (const fs::path& file : folder_entries(model))
    if (file_exists(file) && file.extension() != ".lir") bytes += file_bytes(file);
  return bytes;
}

void guard_space(const fs::path& output, uint64_t bytes) {
  const uint64_t room = free_disk_bytes(output);
  if (room >= bytes) return;
  throw_failed(output.string(),
               "needs " + std::to_string(bytes / 1000000 + 1) + " MB, the disk has " +
                   std::to_string(room / 1000000) + " MB free",
               "free some space, or give an output path on another disk");
}

void write_file_of(const FolderWriter& folder, const data::TokenizerFile& file) {
  const fs::path path = folder.temporary() / file.name;
  make_folders(path.parent_path());
  write_text_atomic(path, file.content);
}

std::vector<std::string> folder_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& entry : folder_entries(folder)) names.push_back(entry.filename().string());
  return names;
}

uint64_t parse_byte_size(std::string_view text, std::string_view flag) {
  const auto fail = [&]() -> uint64_t {
    throw_usage(std::string(flag) + " \"" + std::string(text) + "\" is no size",
                "write it as 5GB, 500MB, 2GiB or a number of bytes");
  };
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || !(number > 0)) return fail();
  std::string unit(rest, end);
  for (char& c : unit) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {{"", 1},
                                    {"B", 1},
                                    {"KB", 1e3},
                                    {"MB", 1e6},
                                    {"GB", 1e9},
                                    {"TB", 1e12},
                                    {"KIB", 1024},
                                    {"MIB", 1048576.0},
                                    {"GIB", 1073741824.0},
                                    {"TIB", 1099511627776.0}};
  for (const Unit& each : kUnits) {
    if (unit != each.name) continue;
    const double bytes = std::floor(number * each.bytes);
    if (!(bytes >= 1 && bytes < 0x1p62)) return fail();
    return static_cast<uint64_t>(bytes);
  }
  return fail();
}

}  // namespace loongforge::convert

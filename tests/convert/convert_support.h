// What the tests of import and export share.
#pragma once

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "convert/export.h"
#include "convert/import.h"
#include "ir/reader.h"
#include "support/checkpoint_files.h"

namespace loongforge::test {

inline convert::ImportOptions import_options(const std::filesystem::path& from,
                                             const std::filesystem::path& to,
                                             const std::string& quantize = "bf16") {
  convert::ImportOptions options;
  options.input_path = from;
  options.output_path = to;
  options.quantize = quantize;
  options.device = "x86_64";
  options.threads = 2;
  return options;
}

inline convert::ExportOptions export_options(const std::filesystem::path& from,
                                             const std::filesystem::path& to,
                                             const std::string& dtype = "") {
  convert::ExportOptions options;
  options.input_path = from;
  options.output_path = to;
  options.dtype = dtype;
  options.threads = 2;
  return options;
}

// bf16 of a value by its definition: the nearest of the two neighbours, ties to the even one.
inline float nearest_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint32_t low = bits & 0xFFFF0000u, high = low + 0x10000u;
  float below, above;
  std::memcpy(&below, &low, 4);
  std::memcpy(&above, &high, 4);
  const double down = std::abs(double{value} - double{below}),
               up = std::abs(double{above} - double{value});
  if (down != up) return down < up ? below : above;
  return (low & 0x10000u) == 0 ? below : above;
}

// E4M3-LA by the formula of loongir(5).
inline double e4m3la(uint8_t code) {
  const int e = (code >> 3) & 15, m = code & 7;
  const double magnitude = e == 0 ? std::ldexp(m / 8.0, -11) : std::ldexp(1.0 + m / 8.0, e - 12);
  return (code & 128) != 0 ? -magnitude : magnitude;
}

// Values of an FP8 tensor of a LoongIR folder, decoded here from codes and scales.
inline std::vector<double> decode_fp8(const ir::Reader& reader, const std::string& name,
                                      std::vector<float>* scales = nullptr) {
  const ir::TensorEntry& entry = reader.model().stored_tensor(name);
  std::vector<uint8_t> codes(entry.bytes);
  reader.read_rows(entry, 0, entry.rows(), codes);
  const std::vector<float> scale = reader.read_f32(entry.scale);
  if (scales != nullptr) *scales = scale;
  const int64_t blocks = (entry.cols() + 127) / 128;
  std::vector<double> out;
  for (int64_t r = 0; r < entry.rows(); ++r) {
    for (int64_t c = 0; c < entry.cols(); ++c) {
      const uint8_t code =
          codes[static_cast<size_t>(static_cast<uint64_t>(r) * entry.row_stride()) +
                static_cast<size_t>(c)];
      out.push_back(e4m3la(code) * double{scale[static_cast<size_t>(r / 128 * blocks + c / 128)]});
    }
  }
  return out;
}

inline std::vector<float> source_values(const std::filesystem::path& folder,
                                        const std::string& name) {
  const auto source = formats::open_tensor_source(folder);
  return source->read_f32(source->at(name));
}

// A byte-level tokenizer of a few tokens: enough to be loaded, with or without a pad.
inline void write_tokenizer(const std::filesystem::path& folder, const char* pad_token) {
  write_file(folder / "tokenizer.json", R"({"version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [
      {"id": 3, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
      {"id": 4, "content": "<pad>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
      "fuse_unk": false, "byte_fallback": false, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
  std::string config = R"({"eos_token": "<end>", "chat_template": "{{ messages[0].content }}")";
  if (pad_token != nullptr) config += std::string(R"(, "pad_token": ")") + pad_token + "\"";
  write_file(folder / "tokenizer_config.json", config + "}");
}

}  // namespace loongforge::test

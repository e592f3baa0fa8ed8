// The quant_state of a bitsandbytes weight, over tensors that single and double quantisation fit: a
// plan is made, and what it promises is read.
#include <memory>

#include "formats/quantized_source.h"
#include "formats/safetensors.h"
#include "fuzz.h"
#include "kernels/nf4_format.h"

namespace {

using namespace loongforge;

// x.weight of 130 codes, its absmax as F32 or U8 (by the first byte), and all companions.
std::string checkpoint(bool nested, std::string_view state) {
  const std::string name = "\"x.weight", u8 = "\":{\"dtype\":\"U8\",\"shape\":[",
                    f32 = "\":{\"dtype\":\"F32\",\"shape\":[";
  std::string header = "{", data;
  const auto add = [&](const std::string& suffix, const std::string& type, const std::string& bytes,
                       size_t element) {
    header += name + suffix + type + std::to_string(bytes.size() / element) +
              "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + bytes.size()) + "]},";
    data += bytes;
  };
  add("", u8, std::string(65, '\x5A'), 1);
  add(".absmax", nested ? u8 : f32, std::string(nested ? 3 : 12, '\x3C'), nested ? 1 : 4);
  if (nested) {
    add(".nested_absmax", f32, std::string(4, '\x3C'), 4);
    add(".nested_quant_map", f32, std::string(1024, '\x3C'), 4);
  }
  add(".quant_map", f32,
      {reinterpret_cast<const char*>(kernels::kNf4Values), sizeof kernels::kNf4Values}, 4);
  add(".quant_state.bitsandbytes__nf4", u8, std::string(state), 1);
  header.back() = '}';
  while (header.size() % 8 != 0) header += ' ';
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size() & 0xFF);
  file[1] = static_cast<char>(header.size() >> 8);
  return file + header + data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string file = checkpoint((data[0] & 1) != 0, fuzz::text_of(data + 1, size - 1));
  const std::filesystem::path path = fuzz::folder().write(
      "model.safetensors", {reinterpret_cast<const uint8_t*>(file.data()), file.size()});
  const support::Json config = support::Json::parse(
      R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})",
      "config.json");
  fuzz::expect_clean(path.string(), [&] {
    fuzz::read_all(formats::QuantizedSource(std::make_unique<formats::SafetensorsFile>(path),
                                            config, "config.json"));
  });
  return 0;
}

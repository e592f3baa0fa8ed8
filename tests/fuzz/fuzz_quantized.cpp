// quantization_config of a quantised checkpoint, over tensors that several schemes fit: a plan is
// made, and what it promises is read.
#include <memory>

#include "formats/quantized_source.h"
#include "formats/safetensors.h"
#include "fuzz.h"

namespace {

using namespace loongforge;

// X.weight F8_E4M3 [4, 6] with a scale per tensor, per channel and in blocks of [2, 3].
const std::filesystem::path& prepared() {
  static const std::filesystem::path path = [] {
    std::string header =
        R"({"t.weight":{"dtype":"F8_E4M3","shape":[4,6],"data_offsets":[0,24]},)"
        R"("t.weight_scale":{"dtype":"F32","shape":[1],"data_offsets":[24,28]},)"
        R"("c.weight":{"dtype":"F8_E4M3","shape":[4,6],"data_offsets":[28,52]},)"
        R"("c.weight_scale":{"dtype":"BF16","shape":[4,1],"data_offsets":[52,60]},)"
        R"("b.weight":{"dtype":"F8_E4M3","shape":[4,6],"data_offsets":[60,84]},)"
        R"("b.weight_scale_inv":{"dtype":"F32","shape":[2,2],"data_offsets":[84,100]},)"
        R"("n.weight":{"dtype":"F32","shape":[2],"data_offsets":[100,108]}})";
    while (header.size() % 8 != 0) header += ' ';
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size() & 0xFF);
    file[1] = static_cast<char>(header.size() >> 8);
    file += header + std::string(108, '\x38');
    return fuzz::folder().write("model.safetensors",
                                {reinterpret_cast<const uint8_t*>(file.data()), file.size()});
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::filesystem::path& file = prepared();
  fuzz::expect_clean(fuzz::folder().path().string(), [&] {
    const std::string where = (fuzz::folder().path() / "config.json").string();
    support::Json config = support::Json::parse(fuzz::text_of(data, size), where);
    fuzz::read_all(formats::QuantizedSource(std::make_unique<formats::SafetensorsFile>(file),
                                            std::move(config), where));
  });
  return 0;
}

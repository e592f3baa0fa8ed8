// fp8_codec.safetensors: <form>_decode (values of all 256 codes), <form>_in and <form>_out (values
// and the codes they saturate to), for OCP's e4m3 and e5m2. Our E4M3-LA has e4m3's codes for values
// 2^-5 as large.
#include <vector>

#include "base/error.h"
#include "formats/safetensors.h"
#include "kernels/fp8_format.h"
#include "kernels/quant.h"
#include "tools/quant_check/report.h"

namespace loongforge::quant_check {
namespace {

using kernels::Elem;

template <Elem kElem>
void check_form(const formats::SafetensorsFile& file, const std::string& form, float to_ours,
                Report* report) {
  const std::vector<float> values = file.read_f32(file.at(form + "_decode"));
  const std::vector<float> inputs = file.read_f32(file.at(form + "_in"));
  const formats::StoredTensor& out = file.at(form + "_out");
  if (values.size() != 256 || out.dtype != tensor::DType::kU8 || out.bytes != inputs.size())
    throw_bad_data(out.where(), "is not one code for each value of " + form + "_in");
  std::vector<uint8_t> codes(inputs.size());
  file.read_range(out, 0, codes);

  std::vector<uint8_t> all(256);
  std::vector<float> decoded(256), wanted(256);
  for (size_t c = 0; c < 256; ++c) {
    all[c] = static_cast<uint8_t>(c);
    wanted[c] = values[c] * to_ours;
    decoded[c] = std::bit_cast<float>(kernels::fp8_decode_bits<kElem>(all[c]));
  }
  report->same_values(form + " decode, the definition", decoded, wanted);
  kernels::fp8_decode(kElem, all.data(), 256, decoded.data());
  report->same_values(form + " decode, this CPU's kernels", decoded, wanted);

  std::vector<float> ours(inputs.size());
  std::vector<uint8_t> encoded(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    ours[i] = inputs[i] * to_ours;
    encoded[i] = kernels::fp8_encode_bits<kElem>(std::bit_cast<uint32_t>(ours[i])).code;
  }
  report->same_codes(form + " encode, the definition", encoded, codes);
  kernels::fp8_encode(kElem, ours.data(), static_cast<int64_t>(ours.size()), encoded.data(),
                      nullptr);
  report->same_codes(form + " encode, this CPU's kernels", encoded, codes);
}

}  // namespace

void check_fp8_codec(const std::filesystem::path& dir, Report* report) {
  report->begin("fp8_codec: OCP E4M3 and E5M2");
  const std::filesystem::path path = dir / "fp8_codec.safetensors";
  if (!std::filesystem::exists(path)) return report->absent(path);
  const formats::SafetensorsFile file(path);
  check_form<Elem::kE4M3>(file, "e4m3", 0x1p-5f, report);
  check_form<Elem::kE5M2>(file, "e5m2", 1.0f, report);
}

}  // namespace loongforge::quant_check

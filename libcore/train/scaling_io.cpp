#include "train/scaling_io.h"

#include <cmath>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/paths.h"
#include "formats/safetensors.h"
#include "kernels/quant.h"

namespace loongforge::train {
namespace {

namespace fs = std::filesystem;
using tensor::DType;

constexpr std::string_view kAmax = ".amax", kBinades = ".binades";

template <class T>
std::vector<T> read(const formats::SafetensorsFile& file, const formats::StoredTensor& t,
                    DType dtype) {
  if (t.dtype != dtype || t.shape.size() != 1)
    throw_bad_data(t.where(), "is not as delayed scaling stores it");
  std::vector<T> values(static_cast<size_t>(t.elements()));
  file.read_range(t, 0, {reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(T)});
  return values;
}

}  // namespace

void write_scaling(const fs::path& folder, const quant::ScalingState& state) {
  if (state.tensors().empty()) return;
  std::vector<formats::NewTensor> list;
  for (const auto& [name, t] : state.tensors()) {
    list.push_back({name + std::string(kAmax), DType::kF32, {static_cast<int64_t>(t.amax.size())}});
    if (!t.binades.empty())
      list.push_back(
          {name + std::string(kBinades), DType::kI64, {static_cast<int64_t>(t.binades.size())}});
  }
  formats::SafetensorsWriter writer(folder / kScalingFile, std::move(list), {{"format", "1"}});
  for (const auto& [name, t] : state.tensors()) {
    writer.write(name + std::string(kAmax),
                 {reinterpret_cast<const uint8_t*>(t.amax.data()), t.amax.size() * sizeof(float)});
    if (!t.binades.empty())
      writer.write(
          name + std::string(kBinades),
          {reinterpret_cast<const uint8_t*>(t.binades.data()), t.binades.size() * sizeof(int64_t)});
  }
  writer.finish();
}

std::map<std::string, quant::ScalingState::Tensor> read_scaling(const fs::path& folder) {
  std::map<std::string, quant::ScalingState::Tensor> tensors;
  const fs::path path = folder / kScalingFile;
  if (!path_exists(path)) return tensors;
  const formats::SafetensorsFile file(path);
  for (const formats::StoredTensor& t : file.tensors()) {
    if (t.name.ends_with(kAmax)) {
      std::vector<float>& amax = tensors[t.name.substr(0, t.name.size() - kAmax.size())].amax;
      amax = read<float>(file, t, DType::kF32);
      for (float value : amax)
        if (!std::isfinite(value) || value < 0.0f)
          throw_bad_data(t.where(), "holds a value that no tensor has as its largest");
    } else if (t.name.ends_with(kBinades)) {
      std::vector<int64_t>& bins =
          tensors[t.name.substr(0, t.name.size() - kBinades.size())].binades;
      bins = read<int64_t>(file, t, DType::kI64);
      if (bins.size() != static_cast<size_t>(kernels::kBinades))
        throw_bad_data(t.where(), "is no histogram of binades");
      for (int64_t count : bins)
        if (count < 0 || count > int64_t{1} << 55)
          throw_bad_data(t.where(), "holds an impossible count");
    } else {
      throw_bad_data(t.where(), "does not belong to delayed scaling");
    }
  }
  return tensors;
}

}  // namespace loongforge::train

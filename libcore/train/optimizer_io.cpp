#include "train/optimizer_io.h"

#include <charconv>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/safetensors.h"

namespace loongforge::train {
namespace {

namespace fs = std::filesystem;
using formats::SafetensorsFile;
using formats::StoredTensor;
using kernels::Elem;
using tensor::DType;

std::vector<uint8_t> bytes_of(const SafetensorsFile& file, const StoredTensor& t, DType dtype,
                              uint64_t bytes) {
  if (t.dtype != dtype || t.bytes != bytes)
    throw_bad_data(t.where(), "is not the moment array that this run needs");
  std::vector<uint8_t> data(static_cast<size_t>(bytes));
  file.read_range(t, 0, data);
  return data;
}

// The state as it is, where the file holds this optimizer's format.
bool read_same(const SafetensorsFile& file, optim::AdamW& optimizer) {
  std::vector<optim::StateArray> state = optimizer.state();
  for (const optim::StateArray& a : state)
    if (const StoredTensor* t = file.find(a.name); t == nullptr || t->dtype != a.dtype)
      return false;
  for (const optim::StateArray& a : state) {
    const StoredTensor& t = file.at(a.name);
    if (t.bytes != a.bytes.size())
      throw_bad_data(t.where(), "is not the moment array that this run needs");
    file.read_range(t, 0, a.bytes);
  }
  return true;
}

// A moment of any format as numbers.
std::vector<float> read_moment(const SafetensorsFile& file, const std::string& parameter,
                               bool second, int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  const std::string plain = parameter + (second ? ".exp_avg_sq" : ".exp_avg");
  const std::string codes = parameter + (second ? ".exp_avg_sq_root" : ".exp_avg");
  if (const StoredTensor* exponents = file.find(codes + ".exponents")) {
    const int64_t blocks = (n + kernels::kFeatureBlock - 1) / kernels::kFeatureBlock;
    const std::vector<uint8_t> data = bytes_of(file, file.at(codes), DType::kU8,
                                               static_cast<uint64_t>(n)),
                               exps = bytes_of(file, *exponents, DType::kI8,
                                               static_cast<uint64_t>(blocks));
    for (uint8_t e : exps)
      if (static_cast<int8_t>(e) < -126)
        throw_bad_data(exponents->where(), "holds an impossible exponent");
    kernels::read_moments(data.data(), reinterpret_cast<const int8_t*>(exps.data()), Elem::kE4M3,
                          second, values.data(), n);
    return values;
  }
  const StoredTensor& t = file.at(plain);
  const bool narrow = t.dtype == DType::kBF16;
  const std::vector<uint8_t> data = bytes_of(file, t, narrow ? DType::kBF16 : DType::kF32,
                                             static_cast<uint64_t>(n) * (narrow ? 2 : 4));
  kernels::read_moments(data.data(), nullptr, narrow ? Elem::kBf16 : Elem::kF32, second,
                        values.data(), n);
  return values;
}

}  // namespace

void write_optimizer(const fs::path& folder, optim::AdamW& optimizer) {
  std::vector<formats::NewTensor> tensors;
  const std::vector<optim::StateArray> state = optimizer.state();
  for (const optim::StateArray& a : state) tensors.push_back({a.name, a.dtype, a.shape});
  formats::SafetensorsWriter writer(folder / kOptimizerFile, std::move(tensors),
                                    {{"steps", std::to_string(optimizer.steps())}});
  for (const optim::StateArray& a : state) writer.write(a.name, a.bytes);
  writer.finish();
}

void read_optimizer(const fs::path& folder, int64_t max_steps, optim::AdamW& optimizer) {
  const SafetensorsFile file(folder / kOptimizerFile);
  if (!read_same(file, optimizer)) {
    for (size_t v = 0; v < optimizer.views().size(); ++v) {
      const optim::ParameterView& view = optimizer.views()[v];
      for (const bool second : {false, true})
        optimizer.set_moment(v, second, read_moment(file, view.name, second, view.size()));
    }
  }
  const auto steps = file.metadata().find("steps");
  int64_t done = 0;
  if (steps == file.metadata().end() ||
      std::from_chars(steps->second.data(), steps->second.data() + steps->second.size(), done).ec !=
          std::errc() ||
      done < 0 || done > max_steps)
    throw_bad_data((folder / kOptimizerFile).string(),
                   "does not say after how many steps it was written");
  optimizer.set_steps(done);
}

}  // namespace loongforge::train

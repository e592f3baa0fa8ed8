// A quantised Hugging Face checkpoint seen as what it means: X.weight with its logical shape, read
// as numbers. Scales and the other companions are not among tensors(); quantized() gives them, with
// the codes, to whoever wants to keep them as they are.
//
// Opening checks the whole plan against quantization_config: which method, whose scales, their
// types and shapes. Thread-safety: const members may be called from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/api.h"
#include "formats/hf_config.h"
#include "formats/tensor_source.h"
#include "support/json.h"

namespace loongforge::formats {

enum class QuantScheme : uint8_t {
  kFp8,  // OCP E4M3 codes; value = code x scale of its block, multiplied in fp32
  kNf4,  // bitsandbytes' NF4: two codes a byte, the first in the high half, over all elements in
         // order; value = table[code] x absmax of its block, multiplied in fp32
};

// One quantised weight. All pointers point into QuantizedSource::stored().
struct LF_API QuantizedTensor {
  std::string name;            // "X.weight"
  std::vector<int64_t> shape;  // logical
  QuantScheme scheme = QuantScheme::kFp8;
  const StoredTensor* codes = nullptr;
  // kFp8: a multiplier each block_rows x block_cols elements (ragged at the edges; one block for
  // all: the weight's own shape), row-major whatever the tensor's rank is.
  const StoredTensor* scale = nullptr;
  int64_t block_rows = 0, block_cols = 0;
  // kNf4: scale is an absmax for each nf4_block elements in order, whatever row they are in: F32,
  // or U8 codes where the absmax are quantised themselves (read_nf4_absmax decodes them).
  int64_t nf4_block = 0;
  const StoredTensor *nested_absmax = nullptr, *nested_map = nullptr;
  int64_t nested_block = 0;
  float nested_offset = 0;
  // Carried along, not needed to read the weight: input_scale, input_scale_ub, zero points that are
  // all zero.
  std::vector<const StoredTensor*> companions;
};

class LF_API QuantizedSource : public TensorSource {
 public:
  // quantization_config: the object of config.json; where: that file's path. kBadData Error naming
  // file and key or tensor.
  QuantizedSource(std::unique_ptr<TensorSource> stored, support::Json quantization_config,
                  std::string where);
  ~QuantizedSource() override;

  std::string_view format() const noexcept override { return stored_->format(); }
  const TensorSource& stored() const noexcept { return *stored_; }  // as the files have it
  const std::string& method() const noexcept { return method_; }    // quant_method
  // Null for a tensor that is stored as numbers.
  const QuantizedTensor* quantized(const StoredTensor& tensor) const;

  // Stored bytes of tensors that are not quantised; of those, ask stored().
  void read_range(const StoredTensor& tensor, uint64_t offset,
                  std::span<uint8_t> out) const override;
  void read_rows_f32(const StoredTensor& tensor, int64_t row0, int64_t row1,
                     std::span<float> out) const override;
  bool readable_f32(const StoredTensor& tensor) const override;

 private:
  std::unique_ptr<TensorSource> stored_;
  support::Json config_;
  std::string method_;
  std::vector<QuantizedTensor> quantized_;
  std::unordered_map<std::string_view, size_t> index_;  // logical name -> quantized_
};

// Absmax [first, last) of an NF4 weight, decoded as bitsandbytes does where they are quantised.
LF_API std::vector<float> read_nf4_absmax(const TensorSource& stored, const QuantizedTensor& tensor,
                                          int64_t first, int64_t last);

// The source as it is where config.json has no quantization_config, else a QuantizedSource over it.
LF_API std::unique_ptr<TensorSource> with_quantization(std::unique_ptr<TensorSource> source,
                                                       const HfConfig& config);

}  // namespace loongforge::formats

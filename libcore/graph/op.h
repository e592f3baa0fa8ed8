// The interface of an op of the lowered plan, and what it is given to run. One file in ops/ holds
// one op: shapes, what its backward needs, forward and backward side by side.
//
// A plan is a list of instructions over buffers of [tokens, cols]; an instruction is one op in one
// phase with its views bound. Thread-safety: ops are immutable once built; forward() and backward()
// run on the caller's thread and use context.pool.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/pool.h"
#include "graph/batch.h"
#include "graph/kv_cache.h"
#include "graph/parameters.h"
#include "kernels/attention.h"
#include "kernels/quant.h"
#include "kernels/types.h"
#include "quant/scaling_state.h"
#include "quant/statistics.h"

namespace loongforge::graph {

class Op;

// How a buffer is laid out: tokens * cols + fixed elements; row t of a token matrix stands at t *
// cols elements.
struct BufferSpec {
  int64_t cols = 0;
  kernels::Elem elem = kernels::Elem::kF32;
  int64_t fixed = 0;
};

// Columns [col0, col0 + cols) of a buffer; buffer < 0: absent.
struct View {
  int buffer = -1;
  int64_t col0 = 0, cols = 0;
  bool valid() const { return buffer >= 0; }
};

enum class Phase : uint8_t { kForward, kRecompute, kBackward };

struct Instruction {
  const Op* op = nullptr;
  Phase phase = Phase::kForward;
  std::vector<View> in, out, aux;  // backward: only those that backward_needs() names are valid
  std::vector<View> d_out,
      d_in;                    // backward; an invalid d_in is not wanted, an invalid d_out is zero
  std::vector<View> residual;  // backward, per input: to be added into d_in (invalid: nothing)
  std::vector<View> temp;      // scratch of this instruction
};

struct RunStats {
  double loss_sum = 0;  // over rows with a target
  int64_t valid = 0;
  quant::StatsMap tensors;  // of what was rounded to FP8

  void add(const RunStats& other);
};

// Seconds per kind of work, for benchmarks and reports. Null in RunContext: not measured. Products
// are counted by what they serve: gemm (base weights and their gradients), adapter_gemm (LoRA's
// narrow ones), head_gemm (the output layer's); loss is what the output layer does besides.
struct Profile {
  double gemm = 0, adapter_gemm = 0, head_gemm = 0, attention = 0, norm = 0, loss = 0, quantize = 0,
         elementwise = 0;
};

// Dropout masks: bits for (op, rows) reproducible from (seed, step, micro-batch). Implemented over
// SM4-CTR.
class MaskSource {
 public:
  virtual ~MaskSource() = default;
  // Fills rows * row_bytes bytes: bit set = keep. stream: unique per use of dropout in the model.
  virtual void fill(uint32_t stream, int64_t rows, int64_t row_bytes, double drop,
                    uint8_t* bits) const = 0;
};

struct RunContext {
  ThreadPool& pool;
  Parameters& params;
  const Batch& batch;
  kernels::Precision precision = kernels::Precision::kBf16;
  quant::ScalingState* scaling =
      nullptr;                  // of delayed scaling; null: every tensor by its own largest value
  bool measure_errors = false;  // fill TensorStats::error as well
  uint8_t* arena = nullptr;
  const std::vector<BufferSpec>* buffers = nullptr;
  const std::vector<size_t>* offsets = nullptr;  // of buffers in the arena
  float* gradients =
      nullptr;  // flat, as Parameters lays trainables out: this micro-batch's gradient
  const MaskSource* masks = nullptr;
  KvCache* cache = nullptr;  // generation
  float* logits =
      nullptr;  // [documents, vocabulary], written by the head when it is asked for logits
  float* all_logits = nullptr;             // [tokens, vocabulary], for checks
  std::vector<float>* row_loss = nullptr;  // per token row; for checks and per-sample evaluation
  RunStats stats{};
  Profile* profile = nullptr;
  double* timed = nullptr;  // the field of profile that the time goes to now (Timed's)

  int64_t tokens() const { return batch.tokens(); }
  kernels::Mat mat(const View& view) const;  // data null for an absent view
  kernels::MatOut out(const View& view) const;
  template <class T>
  T* raw(const View& view) const {
    return static_cast<T*>(out(view).data);
  }
};

struct OutputSpec {
  int64_t cols;
  kernels::Elem elem;
};

// Which tensors of the forward an op's backward reads.
struct Needs {
  std::vector<int> inputs, outputs, aux;
};

class Op {
 public:
  Op(std::string name, int block) : name_(std::move(name)), block_(block) {}
  virtual ~Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  const std::string& name() const { return name_; }
  int block() const { return block_; }

  virtual std::vector<OutputSpec> outputs() const = 0;  // adjacent columns of one buffer, in order
  virtual std::vector<BufferSpec> aux() const {
    return {};
  }  // further results that only the backward reads
  virtual std::vector<BufferSpec> temps(Phase) const { return {}; }
  virtual bool in_place() const { return false; }  // output i is input i, same memory
  virtual Needs backward_needs() const { return {}; }
  // True: the forward is a pass over memory, so its outputs are recomputed for the backward instead
  // of saved.
  virtual bool cheap() const { return false; }
  // True: backward passes d_out on unchanged as d_in of every input (no instruction is needed).
  virtual bool passes_gradient() const { return false; }
  virtual bool adds_residual() const {
    return false;
  }                                              // backward can add instr.residual[0] into d_in[0]
  virtual bool trains() const { return false; }  // has trainable parameters
  virtual double forward_flops_per_token() const { return 0; }

  virtual void forward(RunContext& context, const Instruction& i) const = 0;
  virtual void backward(RunContext& context, const Instruction& i) const = 0;

 private:
  std::string name_;
  int block_;
};

}  // namespace loongforge::graph

// oneDNN's matmul with weights in the layout that it prefers: bf16 and fp32.
#include "bench/peers/peers.h"

#ifdef LF_BENCH_ONEDNN
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace loongforge::bench {

#ifdef LF_BENCH_ONEDNN
namespace {

using dnnl::memory;

class OneDnn : public Peer {
 public:
  OneDnn(const PeerShape& s, bool bf16)
      : bf16_(bf16), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    omp_set_num_threads(1);
    const auto type = bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    const std::vector<float> a = peer_values(static_cast<size_t>(s.m * s.k));
    for (int p = 0; p < s.parts; ++p) {
      const int64_t n0 = part_begin(s, p), n = part_end(s, p) - n0;
      const memory::desc a_desc({s.m, s.k}, type, memory::format_tag::ab);
      const memory::desc any({s.k, n}, type, memory::format_tag::any);
      const memory::desc c_desc({s.m, n}, memory::data_type::f32, memory::format_tag::ab);
      const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a_desc, any, c_desc), engine_);
      Part part{dnnl::matmul(desc),
                converted(a, {s.m, s.k}, memory::format_tag::ab, a_desc),
                {},
                memory(c_desc, engine_)};
      const std::vector<float> w = peer_values(static_cast<size_t>(n * s.k));
      for (size_t copy = 0; copy < s.copies; ++copy)
        part.weights.push_back(converted(w, {s.k, n}, memory::format_tag::ba, desc.weights_desc()));
      parts_.push_back(std::move(part));
    }
  }
  const char* name() const override {
    if (!bf16_) return "oneDNN f32";
    const bool tiles = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_amx;
    return tiles ? "oneDNN bf16 (AMX)" : "oneDNN bf16";
  }
  void run(int part, size_t copy) override {
    omp_set_num_threads(1);  // of this thread
    Part& p = parts_[static_cast<size_t>(part)];
    dnnl::stream stream(engine_);
    p.matmul.execute(
        stream, {{DNNL_ARG_SRC, p.a}, {DNNL_ARG_WEIGHTS, p.weights[copy]}, {DNNL_ARG_DST, p.c}});
    stream.wait();
  }

 private:
  struct Part {
    dnnl::matmul matmul;
    memory a;
    std::vector<memory> weights;
    memory c;
  };

  memory converted(const std::vector<float>& values, const memory::dims& dims,
                   memory::format_tag tag, const memory::desc& to) {
    memory from(memory::desc(dims, memory::data_type::f32, tag), engine_,
                const_cast<float*>(values.data()));
    memory result(to, engine_);
    dnnl::reorder(from, result).execute(stream_, from, result);
    stream_.wait();
    return result;
  }

  bool bf16_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<Part> parts_;
};

}  // namespace

std::vector<std::unique_ptr<Peer>> make_onednn(const PeerShape& shape, bool avx2_only) {
  std::vector<std::unique_ptr<Peer>> peers;
  if (avx2_only) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  // Without AVX-512 its bf16 product is reference code, no peer of anyone's.
  if (!avx2_only && dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_bf16)
    peers.push_back(std::make_unique<OneDnn>(shape, true));
  peers.push_back(std::make_unique<OneDnn>(shape, false));
  return peers;
}
#else
std::vector<std::unique_ptr<Peer>> make_onednn(const PeerShape&, bool) { return {}; }
#endif

}  // namespace loongforge::bench

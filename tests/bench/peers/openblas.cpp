// OpenBLAS sgemm: fp32, weights as they are.
#include "bench/peers/peers.h"

#ifdef LF_BENCH_OPENBLAS
#include <cblas.h>
#endif

namespace loongforge::bench {

#ifdef LF_BENCH_OPENBLAS
namespace {

class OpenBlas : public Peer {
 public:
  explicit OpenBlas(const PeerShape& s)
      : s_(s),
        a_(peer_values(static_cast<size_t>(s.m * s.k))),
        c_(static_cast<size_t>(s.m * s.n)),
        w_(s.copies, peer_values(static_cast<size_t>(s.n * s.k))) {
    openblas_set_num_threads(1);
  }
  const char* name() const override { return "OpenBLAS sgemm"; }
  void run(int part, size_t copy) override {
    const int64_t n0 = part_begin(s_, part), n = part_end(s_, part) - n0;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(s_.m),
                static_cast<int>(n), static_cast<int>(s_.k), 1.0f, a_.data(),
                static_cast<int>(s_.k), w_[copy].data() + n0 * s_.k, static_cast<int>(s_.k), 0.0f,
                c_.data() + n0, static_cast<int>(s_.n));
  }

 private:
  PeerShape s_;
  std::vector<float> a_, c_;
  std::vector<std::vector<float>> w_;
};

}  // namespace

std::unique_ptr<Peer> make_openblas(const PeerShape& shape) {
  return std::make_unique<OpenBlas>(shape);
}
#else
std::unique_ptr<Peer> make_openblas(const PeerShape&) { return nullptr; }
#endif

}  // namespace loongforge::bench

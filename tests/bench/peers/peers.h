// Other libraries' products, timed beside ours: oneDNN (weights packed once) and OpenBLAS. Each is
// asked for one thread's columns on one thread, as our own pieces are, so that no other pool of
// threads spins on the cores.
// Thread-safety: run() of different parts may be called at the same time, each by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace loongforge::bench {

// C[m, n] = A[m, k] W[n, k]^T, the columns cut into parts; C is fp32.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual const char* name() const = 0;
  // The product of one part with one of the copies of the weight.
  virtual void run(int part, size_t copy) = 0;
};

struct PeerShape {
  int64_t m, n, k;
  int parts;
  size_t copies;  // of the weight, which rotate
};

// Those that the build found. avx2_only: no wider instructions, as far as a library can be told;
// what was set in its environment when the process started counts.
std::vector<std::unique_ptr<Peer>> make_peers(const PeerShape& shape, bool avx2_only);
// What was not found, to be said: "" or a sentence.
std::string missing_peers();

// One library each; null where the build lacks it.
std::vector<std::unique_ptr<Peer>> make_onednn(const PeerShape& shape, bool avx2_only);
std::unique_ptr<Peer> make_openblas(const PeerShape& shape);

// Small values, the same for every peer.
std::vector<float> peer_values(size_t count);
inline int64_t part_begin(const PeerShape& s, int part) { return s.n / 16 * part / s.parts * 16; }
inline int64_t part_end(const PeerShape& s, int part) {
  return part + 1 == s.parts ? s.n : part_begin(s, part + 1);
}

}  // namespace loongforge::bench

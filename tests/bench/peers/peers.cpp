#include "bench/peers/peers.h"

#include <random>

namespace loongforge::bench {

std::vector<std::unique_ptr<Peer>> make_peers(const PeerShape& shape, bool avx2_only) {
  std::vector<std::unique_ptr<Peer>> peers = make_onednn(shape, avx2_only);
  if (auto openblas = make_openblas(shape)) peers.push_back(std::move(openblas));
  return peers;
}

std::string missing_peers() {
  std::string names;
#ifndef LF_BENCH_ONEDNN
  names += " oneDNN (libdnnl-dev)";
#endif
#ifndef LF_BENCH_OPENBLAS
  names += " OpenBLAS (libopenblas-dev)";
#endif
  return names.empty() ? ""
                       : "PEERS ARE MISSING:" + names +
                             ": scripts/install_deps.sh bench, then configure again";
}

std::vector<float> peer_values(size_t count) {
  std::mt19937 rng(1);
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(rng() & 0xFFFF) / 65536.0f - 0.5f;
  return values;
}

}  // namespace loongforge::bench

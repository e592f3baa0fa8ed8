// gemm's table for an ISA whose operands are fp32, from its Ops (generic/tile.md).
#pragma once

#include "kernels/generic/gemm_family.h"
#include "kernels/generic/panel_tile.h"
#include "kernels/generic/panel_weights.h"

namespace loongforge::kernels {
namespace {

template <class Ops>
using PanelGemm = GemmFamily<Ops, PanelWeights<Ops>, PanelTile<Ops, true>, PanelTile<Ops, false>>;

}  // namespace
}  // namespace loongforge::kernels

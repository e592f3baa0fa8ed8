// The rotary embedding of a config.json, in the spelling of transformers v4 (rope_theta,
// rope_scaling) or v5 (rope_parameters). For hf_config.cpp only. Thread-safety: a pure function.
#pragma once

#include "formats/hf_config.h"

namespace loongforge::formats {

// REQUIRES config.where, head_dim and max_position_embeddings are set. kBadData Error naming file
// and key.
RopeConfig parse_rope(const support::Json& raw, const HfConfig& config);

}  // namespace loongforge::formats

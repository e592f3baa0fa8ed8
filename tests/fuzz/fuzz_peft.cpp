// adapter_config.json: the configuration, and the patterns in it at work.
#include "formats/peft.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  fuzz::expect_clean("adapter_config.json", [&] {
    const formats::PeftConfig config = formats::parse_peft_config(
        support::Json::parse(fuzz::text_of(data, size), "adapter_config.json"),
        "adapter_config.json");
    static_cast<void>(config.scaling_of("model.layers.0.self_attn.q_proj"));
    static_cast<void>(config.targets("model.layers.0.self_attn.q_proj"));
    static_cast<void>(formats::peft_config_json(config).dump());
  });
  return 0;
}

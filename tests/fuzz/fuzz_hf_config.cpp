// config.json and generation_config.json.
#include "formats/hf_config.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::expect_clean("config.json", [&] {
    const formats::HfConfig config =
        formats::parse_hf_config(support::Json::parse(text, "config.json"), "config.json");
    static_cast<void>(config.rotary_dim());
    static_cast<void>(config.rope.to_json().dump());
  });
  fuzz::expect_clean("generation_config.json", [&] {
    static_cast<void>(formats::parse_generation_config(
        support::Json::parse(text, "generation_config.json"), "generation_config.json"));
  });
  return 0;
}

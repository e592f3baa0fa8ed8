// QLoRA as a user does it: convert to NF4, train, resume, sample, merge; and what is refused.
#include "cmd/train_runs.h"

namespace loongforge::test {
namespace {

const fs::path& nf4_model() {
  static const TempDir dir;
  static const fs::path folder = [] {
    const fs::path to = dir.path() / "nf4";
    const Outcome o = run({{program("loongforge-convert"), "--input-path",
                            kQuickstart / "tiny_model", "--output-path", to, "--quantize", "nf4"}});
    REQUIRE_MESSAGE(o.code == 0, o.err);
    CHECK_MESSAGE(o.out.find("in NF4") != std::string::npos, o.out);
    return to;
  }();
  return folder;
}

std::vector<std::string> words_for(const fs::path& model, const fs::path& output,
                                   const std::vector<std::string>& more) {
  std::vector<std::string> words = train_words(output, more);
  words[2] = model;
  return words;
}

TEST_CASE(
    "qlora: the loss falls, a resumed run ends as one that was never stopped, samples are written, "
    "the merge exports") {
  const TempDir dir;
  std::vector<std::string> words = {"--finetuning_type", "qlora", "--max_steps",        "8",
                                    "--save_steps",      "3",     "--save_total_limit", "5"};
  const Outcome whole = run({words_for(nf4_model(), dir / "whole", words)});
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  const auto steps = events(whole.err, "step");
  REQUIRE(steps.size() == 8);
  CHECK(steps.back().at("loss").as_double() < steps.front().at("loss").as_double());
  fs::create_directory(dir / "cut");
  fs::copy(dir / "whole" / "checkpoint-3", dir / "cut" / "checkpoint-3",
           fs::copy_options::recursive);
  words.push_back("--resume_from_checkpoint");
  const Outcome rest = run({words_for(nf4_model(), dir / "cut", words)});
  REQUIRE_MESSAGE(rest.code == 0, rest.err);
  check_same_folder(dir / "whole" / "checkpoint-8", dir / "cut" / "checkpoint-8");
  const Outcome merged =
      run({{program("loongforge-convert"), "--export", "hf", "--input-path", nf4_model(),
            "--output-path", dir / "hf", "--adapter", dir / "whole" / "checkpoint-8", "--merge"}});
  CHECK_MESSAGE(merged.code == 0, merged.err);
}

TEST_CASE("qlora: lora on an NF4 model is the same run and says so") {
  const TempDir dir;
  const std::vector<std::string> few = {"--max_steps", "2"};
  const Outcome lora = run({words_for(nf4_model(), dir / "lora", few)});
  REQUIRE_MESSAGE(lora.code == 0, lora.err);
  CHECK(lora.err.find("NF4: this is QLoRA") != std::string::npos);
  const Outcome qlora = run(
      {words_for(nf4_model(), dir / "qlora", {"--max_steps", "2", "--finetuning_type", "qlora"})});
  REQUIRE_MESSAGE(qlora.code == 0, qlora.err);
  CHECK(qlora.err.find("this is QLoRA") == std::string::npos);
  check_same_folder(dir / "lora" / "checkpoint-2", dir / "qlora" / "checkpoint-2");
}

TEST_CASE(
    "qlora: other weights and full fine-tuning are refused in one line, before anything is "
    "written") {
  const TempDir dir;
  const Outcome bf16 = run({words_for(tiny_model(), dir / "a", {"--finetuning_type", "qlora"})});
  CHECK(bf16.code == 2);
  CHECK_MESSAGE(bf16.err.find("--quantize nf4") != std::string::npos, bf16.err);
  const Outcome full = run({words_for(nf4_model(), dir / "b", {"--finetuning_type", "full"})});
  CHECK(full.code == 2);
  CHECK_MESSAGE(full.err.find("are NF4, which cannot be trained; use --finetuning_type qlora") !=
                    std::string::npos,
                full.err);
  CHECK_FALSE(fs::exists(dir / "a"));
  CHECK_FALSE(fs::exists(dir / "b"));
}

// Layers of one input in several forms; all of them in NF4 are the NF4 model.
TEST_CASE(
    "a model with some layers in NF4 by --quantize_override runs, with all of them as an NF4 "
    "model") {
  const TempDir dir;
  const auto eval_loss = [&](const char* name, const std::vector<std::string>& how) {
    std::vector<std::string> words = {program("loongforge-convert"), "--input-path",
                                      kQuickstart / "tiny_model", "--output-path", dir / name};
    words.insert(words.end(), how.begin(), how.end());
    const Outcome made = run({words});
    REQUIRE_MESSAGE(made.code == 0, made.err);
    const Outcome o = run({{program("loongforge-train"), "--model_path", dir / name, "--eval_only",
                            "--json", "--dataset", kQuickstart / "records_eval.jsonl"}});
    REQUIRE_MESSAGE(o.code == 0, o.err);
    return support::Json::parse(o.out, "stdout").at("eval_loss").as_double();
  };
  const double nf4 = eval_loss("nf4", {"--quantize", "nf4"}),
               bf16 = eval_loss("bf16", {"--quantize", "bf16"});
  CHECK(eval_loss("all", {"--quantize", "bf16", "--quantize_override", "*_proj=nf4"}) ==
        doctest::Approx(nf4).epsilon(1e-3));
  const double some = eval_loss(
      "some", {"--quantize", "bf16", "--quantize_override", "*.up_proj=nf4,*.q_proj=nf4"});
  CHECK(some != bf16);
  CHECK(some == doctest::Approx(bf16).epsilon(0.05));
  std::vector<std::string> words = train_words(dir / "out", {"--max_steps", "2"});
  words[2] = dir / "some";
  const Outcome o = run({words});
  CHECK_MESSAGE(o.code == 0, o.err);
}

}  // namespace
}  // namespace loongforge::test

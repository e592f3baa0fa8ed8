// Precision recipes as a user chooses them: each trains, resumes to the bit, and says what it
// rounds.
#include <doctest/doctest.h>

#include <cmath>

#include "cmd/train_runs.h"

namespace loongforge::test {
namespace {

using Words = std::vector<std::string>;

Outcome train(const fs::path& output, const Words& more) {
  Words words = {"--gradient_accumulation_steps", "2"};
  words.insert(words.end(), more.begin(), more.end());
  return run({train_words(output, words)});
}

double last_loss(const Outcome& o) {
  REQUIRE_MESSAGE(o.code == 0, o.err);
  const auto steps = events(o.err, "step");
  REQUIRE_FALSE(steps.empty());
  return steps.back().at("loss").as_double();
}

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST_CASE("every recipe trains: losses near bf16's, which fall") {
  const TempDir dir;
  const Words common = {"--max_steps", "12"};
  const auto with = [&](Words more) {
    more.insert(more.end(), common.begin(), common.end());
    static int n = 0;
    return train(dir / std::to_string(n++), more);
  };
  for (const char* type : {"lora", "full"}) {
    const Words kind = {"--finetuning_type", type};
    const auto both = [&](Words more) {
      more.insert(more.end(), kind.begin(), kind.end());
      if (std::string(type) == "full") more.insert(more.end(), {"--learning_rate", "3e-4"});
      return with(more);
    };
    const Outcome bf16 = both({"--fp8_precision", "bf16"});
    const double want = last_loss(bf16);
    CHECK(want < 0.99 * events(bf16.err, "step").front().at("loss").as_double());
    for (const Words& recipe :
         std::vector<Words>{{"--fp8_precision", "e4m3"},
                            {"--fp8_precision", "e5m2"},
                            {"--fp8_activations", "off"},
                            {"--fp8_activations", "compute"},
                            {"--fp8_precision", "e5m2", "--fp8_activations", "compute"},
                            {"--fp8_precision", "hybrid", "--fp8_activations", "compute"},
                            {"--fp8_recipe", "tensor-current", "--fp8_activations", "compute"},
                            {"--fp8_recipe", "delayed", "--fp8_activations", "compute"},
                            {"--fp8_adaptive_bias", "--fp8_activations", "compute"}}) {
      std::string name = type;
      for (const std::string& word : recipe) name += " " + word;
      INFO(name);
      const double loss = last_loss(both(recipe));
      INFO("loss ", loss, " bf16 ", want);
      CHECK(std::fabs(loss / want - 1.0) < 0.06);
    }
  }
}

TEST_CASE("delayed scaling resumes to the bit; another recipe continues with one warning") {
  const TempDir dir;
  const Words words = {"--max_steps",
                       "8",
                       "--save_steps",
                       "3",
                       "--save_total_limit",
                       "5",
                       "--fp8_adaptive_bias",
                       "--fp8_activations",
                       "compute"};
  const Outcome whole = train(dir / "whole", words);
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  CHECK(whole.err.find("--fp8_adaptive_bias selects --fp8_recipe delayed") != std::string::npos);
  CHECK(fs::exists(dir / "whole" / "checkpoint-3" / "scaling.safetensors"));
  const auto resumed = [&](const char* name, const Words& more) {
    fs::create_directory(dir / name);
    fs::copy(dir / "whole" / "checkpoint-3", dir / name / "checkpoint-3",
             fs::copy_options::recursive);
    Words all = more;
    all.push_back("--resume_from_checkpoint");
    return train(dir / name, all);
  };
  const Outcome rest = resumed("cut", words);
  REQUIRE_MESSAGE(rest.code == 0, rest.err);
  CHECK(count(rest.err, "the checkpoint was made with") == 0);
  for (const auto& entry : fs::directory_iterator(dir / "whole" / "checkpoint-8")) {
    CAPTURE(entry.path().string());
    CHECK(read_text(entry.path()) ==
          read_text(dir / "cut" / "checkpoint-8" / entry.path().filename()));
  }
  const Outcome other =
      resumed("other", {"--max_steps", "8", "--save_steps", "3", "--save_total_limit", "5"});
  REQUIRE_MESSAGE(other.code == 0, other.err);
  CHECK(count(other.err, "the checkpoint was made with") == 1);
  CHECK(count(other.err,
              "this run goes on with --fp8_precision e4m3 --fp8_activations saved --fp8_recipe "
              "block") == 1);
  CHECK(events(other.err, "step").size() == 5);
  CHECK_FALSE(fs::exists(dir / "other" / "checkpoint-8" / "scaling.safetensors"));
}

TEST_CASE("a gradient that saturates: the step is clipped, counted and shown") {
  const TempDir dir;
  const Outcome o = train(dir / "out", {"--max_steps", "3", "--fp8_activations", "compute",
                                        "--fp8_scale_override", "*.0.mlp.down_proj.grad=0.25"});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  const auto steps = events(o.err, "step");
  REQUIRE(steps.size() == 3);
  for (const auto& s : steps) {
    CHECK(s.at("fp8_saturated_gradients").as_int() > 0);
    CHECK(s.at("fp8_headroom").as_double() < 0.0);
    CHECK(s.at("fp8_overflow").as_double() > 0.0);
  }
  CHECK(o.err.find("FP8 overflow detected in layer.model.layers.0.mlp.down_proj.grad") !=
        std::string::npos);
  CHECK(o.err.find("gradients saturated in FP8 in 3 of 3 steps, which were clipped") !=
        std::string::npos);
  const support::Json state =
      support::read_json((dir / "out" / "checkpoint-3" / "loongforge_state.json").string());
  CHECK(state.at("saturated_steps").as_int() == 3);

  const Outcome text = train(dir / "text", {"--max_steps", "1", "--fp8_activations", "compute",
                                            "--fp8_scale_override", "*.0.mlp.down_proj.grad=0.25",
                                            "--log-format", "text", "--max_grad_norm", "0"});
  CHECK(text.err.find("  NOT CLIPPED: ") != std::string::npos);
  const Outcome none = train(dir / "none", {"--max_steps", "1", "--fp8_activations", "compute"});
  CHECK_FALSE(events(none.err, "step").at(0).contains("fp8_saturated_gradients"));
}

TEST_CASE(
    "lean optimizer: trains, resumes to the bit, is smaller; another format continues with one "
    "warning") {
  const TempDir dir;
  const Words common = {"--finetuning_type", "full", "--max_steps",     "6",
                        "--save_steps",      "3",    "--learning_rate", "3e-4"};
  const auto words = [&](Words more) {
    more.insert(more.end(), common.begin(), common.end());
    return more;
  };
  const double want = last_loss(train(dir / "fp32", common));
  const Words lean = words({"--moments", "fp8", "--master", "bf16"});
  const Outcome whole = train(dir / "whole", lean);
  CHECK(std::fabs(last_loss(whole) / want - 1.0) < 0.02);
  CHECK(std::fabs(last_loss(train(dir / "bf16", words({"--moments", "bf16"}))) / want - 1.0) <
        0.01);
  const auto size = [&](const char* run, const char* file) {
    return fs::file_size(dir / run / "checkpoint-6" / file);
  };
  CHECK(size("whole", "optimizer.safetensors") <
        0.30 * static_cast<double>(size("fp32", "optimizer.safetensors")));
  CHECK(size("whole", "weights-00001-of-00001.lir") <
        0.55 * static_cast<double>(size("fp32", "weights-00001-of-00001.lir")));
  const auto resumed = [&](const char* name, const Words& more) {
    fs::create_directory(dir / name);
    fs::copy(dir / "whole" / "checkpoint-3", dir / name / "checkpoint-3",
             fs::copy_options::recursive);
    Words all = more;
    all.push_back("--resume_from_checkpoint");
    return train(dir / name, all);
  };
  const Outcome rest = resumed("cut", lean);
  REQUIRE_MESSAGE(rest.code == 0, rest.err);
  for (const auto& entry : fs::directory_iterator(dir / "whole" / "checkpoint-6")) {
    CAPTURE(entry.path().string());
    CHECK(read_text(entry.path()) ==
          read_text(dir / "cut" / "checkpoint-6" / entry.path().filename()));
  }
  const Outcome other = resumed("other", common);
  CHECK(std::fabs(last_loss(other) / want - 1.0) < 0.02);
  CHECK(count(other.err, "the checkpoint was made with") == 1);
  CHECK(count(other.err, "--moments fp8 --master bf16, this run goes on with") == 1);
  CHECK(train(dir / "x", {"--master", "bf16"}).code == 2);
}

TEST_CASE("--fp8_stats: figures of every tensor, in the metrics and at the end; the same results") {
  const TempDir dir;
  const Words words = {"--max_steps", "2", "--finetuning_type", "full", "--report_to", "jsonl"};
  Words measured = words;
  measured.insert(measured.end(), {"--fp8_stats", "--log-format", "text"});
  const Outcome plain = train(dir / "plain", words), o = train(dir / "stats", measured);
  REQUIRE_MESSAGE(o.code == 0, o.err);
  CHECK(read_text(dir / "plain" / "checkpoint-2" / "optimizer.safetensors") ==
        read_text(dir / "stats" / "checkpoint-2" / "optimizer.safetensors"));
  CHECK(o.out.starts_with("rounding to FP8 by tensor"));  // a result, on standard output
  CHECK(o.out.find("model.layers.0.mlp.down_proj.weight ") != std::string::npos);
  const auto lines = events(read_text(dir / "stats" / "metrics.jsonl"), "step");
  REQUIRE(lines.size() == 2);
  const support::Json& tensors = lines[1].at("fp8_tensors");
  for (const char* name :
       {"model.layers.0.mlp.down_proj.weight", "model.layers.0.mlp.down_proj.input"}) {
    const support::Json& t = tensors.at(name);
    CHECK(t.at("rel_rms").as_double() > 0.01);
    CHECK(t.at("rel_rms").as_double() < 0.04);
    CHECK(t.at("error_std").as_double() > 0.02);
    CHECK(t.at("headroom").as_double() >= 0.0);
    CHECK(t.at("overflow").as_double() == 0.0);
  }
  CHECK_FALSE(
      events(read_text(dir / "plain" / "metrics.jsonl"), "step").at(0).contains("fp8_tensors"));
}

TEST_CASE("--dry_run --show_precision prints every tensor's precision and the rule") {
  const Outcome o = run({{program("loongforge-train"), "--model_path", tiny_model(), "--dataset",
                          kQuickstart / "records.jsonl", "--max_samples", "4", "--dry_run",
                          "--show-precision", "--precision_override", "*.down_proj=bf16"}});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  CHECK(o.out.find("e4m3: linear weights are FP8") == 0);
  CHECK(o.out.find("--precision_override *.down_proj=bf16\n") != std::string::npos);
  CHECK(o.out.find("norms stay in high precision") != std::string::npos);
  const Outcome json = run({{program("loongforge-train"), "--model_path", tiny_model(), "--dataset",
                             kQuickstart / "records.jsonl", "--max_samples", "4", "--dry_run",
                             "--show-precision", "--json"}});
  REQUIRE_MESSAGE(json.code == 0, json.err);
  const support::Json doc = support::Json::parse(json.out, "stdout");
  CHECK(doc.at("tensors").as_array().size() > 20);
  CHECK(doc.at("tensors").as_array()[0].contains("why"));
  const Outcome wrong = train(TempDir() / "x", {"--precision_override", "*.nothing=bf16"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("matches no weight of this model") != std::string::npos);
}

}  // namespace
}  // namespace loongforge::test

// A session over the tiny model and the records of the quick start, as `loongforge train` opens it.
#pragma once

#include <filesystem>
#include <string>

#include "convert/import.h"
#include "support/data.h"
#include "support/temp_dir.h"
#include "train/session.h"
#include "train/training_data.h"

namespace loongforge::test {

// What was printed to standard output since the last clear().
inline std::string g_printed;

inline const std::filesystem::path& quickstart_model() {
  static const TempDir dir;
  static const std::filesystem::path folder = [] {
    convert::ImportOptions o;
    o.model_name = "tiny";
    o.input_path = source_dir() / "scripts" / "quickstart" / "tiny_model";
    o.output_path = dir / "tiny";
    o.quantize = "bf16";
    convert::import_model(o);
    return dir / "tiny";
  }();
  return folder;
}

inline train::TrainOptions quickstart_options() {
  train::TrainOptions o;
  o.model_path = quickstart_model();
  o.dataset = (source_dir() / "scripts" / "quickstart" / "records.jsonl").string();
  o.dry_run = true;
  o.threads = 2;
  return o;
}

inline train::Output captured_output() {
  return {[](const char* text) { g_printed += text; }, [](const char*) {}};
}

inline train::TrainingData load_data(const train::Session& session) {
  return train::load_training_data(session.options(), session.style(), session.tokenizer());
}

}  // namespace loongforge::test

#include "convert/export.h"

#include "base/error.h"
#include "convert/export_hf.h"

namespace loongforge::convert {

ExportReport export_model(const ExportOptions& options, const ProgressCallback& progress) try {
  if (options.input_path.empty()) throw_usage("the input path is empty");
  if (options.format == "hf") return export_hugging_face(options, progress);
  if (options.format == "peft") return export_peft(options, progress);
  if (options.format == "gguf") return export_gguf(options, progress);
  throw_usage("--export " + options.format + " is unknown", "use hf, gguf or peft");
} catch (const std::filesystem::filesystem_error& error) {
  throw_failed(error.path1().string(), error.code().message());
}

}  // namespace loongforge::convert

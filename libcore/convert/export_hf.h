// The forms of export. Thread-safety: one thread.
#pragma once

#include "convert/export.h"

namespace loongforge::convert {

ExportReport export_hugging_face(const ExportOptions& options, const ProgressCallback& progress);
ExportReport export_gguf(const ExportOptions& options, const ProgressCallback& progress);
ExportReport export_peft(const ExportOptions& options, const ProgressCallback& progress);

}  // namespace loongforge::convert

#include "convert/import.h"

#include <algorithm>

#include "base/error.h"
#include "convert/import_plan.h"
#include "convert/kept_fp8.h"
#include "convert/kept_nf4.h"
#include "convert/paths.h"
#include "convert/stripes.h"
#include "ir/layout.h"
#include "ir/writer.h"

namespace loongforge::convert {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSpareBytes = 1 << 20;  // the description and rounding to disk blocks

class ImportRun {
 public:
  ImportRun(const ImportOptions& options, ImportPlan plan, const ProgressCallback& progress)
      : options_(options),
        plan_(std::move(plan)),
        progress_(progress),
        pool_(std::max(1, options.threads)),
        converter_(pool_) {
    total_ = plan_.report.source_bytes;
  }

  ImportReport run() {
    ir::Writer writer(options_.output_path, options_.overwrite, plan_.page);
    for (size_t i = 0; i < plan_.entries.size(); ++i) write_tensor(&writer, i);
    for (const models::PlannedAlias& alias : plan_.model.aliases)
      writer.add_alias(alias.name, alias.alias_of, alias.source != nullptr);
    bool has_generation = false;
    for (const data::TokenizerFile& file : plan_.tokenizer_files) {
      has_generation = has_generation || file.name == "generation_config.json";
      writer.add_file_text(file.name, file.content);
    }
    if (plan_.generation_config && !has_generation)
      writer.add_file_text("generation_config.json", *plan_.generation_config);
    ir::Model model;
    model.family = plan_.report.family;
    model.model_name = plan_.report.model_name;
    model.device = plan_.report.device;
    model.quantize = options_.quantize;
    model.config = plan_.config.raw;
    model.token_ids = plan_.token_ids;
    model.graph = plan_.model.graph;
    writer.finish(std::move(model));
    plan_.report.files = folder_names(options_.output_path);
    return std::move(plan_.report);
  }

 private:
  void write_tensor(ir::Writer* writer, size_t i) {
    const models::PlannedTensor& planned = plan_.model.tensors[i];
    const ir::TensorEntry& entry = plan_.entries[i];
    const formats::QuantizedTensor* kept = plan_.kept[i];
    const RowSource rows = source_rows(planned, kept);
    const bool fp8_codes = kept != nullptr && kept->scheme == formats::QuantScheme::kFp8;
    std::vector<ir::TensorEntry> carried;
    if (kept != nullptr) carried = carried_entries(*kept);
    writer->begin_tensor(entry, carried);
    const uint64_t before = done_;
    int64_t nan_codes = 0;
    Converted converted = converter_.run(
        rows, entry.dtype,
        [&](std::span<const uint8_t> bytes, int64_t count) {
          writer->write_rows(bytes.data(), count);
          if (!fp8_codes) return;
          for (uint8_t code : bytes) nan_codes += (code & 0x7F) == 0x7F;
        },
        [&](int64_t rows_done) {
          done_ = before + planned.source->bytes / static_cast<uint64_t>(rows.rows) *
                               static_cast<uint64_t>(rows_done);
          if (progress_) progress_({done_, total_, planned.name});
        });
    done_ = before + planned.source->bytes;
    if (fp8_codes) {
      converted.counts.nan = nan_codes;
      write_companions(writer, *kept);
    } else if (kept != nullptr) {
      writer->set_scales(nf4_absmax(plan_.quantized->stored(), *kept));
    } else if (entry.block_rows > 0) {
      writer->set_scales(converted.scales);
    }
    if (entry.dtype == tensor::DType::kNf4 && converted.counts.nan > 0) {
      throw_bad_data(planned.source->where(),
                     "holds values that are not finite, which NF4 cannot store");
    }
    writer->finish_tensor();
    plan_.report.nan_elements += converted.counts.nan;
    if (converted.counts.nan > 0) {
      plan_.report.warnings.push_back(planned.source->where() + " holds " +
                                      std::to_string(converted.counts.nan) + " NaN");
    }
    if (converted.counts.overflow > 0) {
      plan_.report.warnings.push_back(planned.source->where() + " holds " +
                                      std::to_string(converted.counts.overflow) +
                                      " infinite values, stored as the largest ones of FP8");
    }
  }

  RowSource source_rows(const models::PlannedTensor& planned,
                        const formats::QuantizedTensor* kept) const {
    if (kept == nullptr) return rows_of(*plan_.source, planned);
    const formats::TensorSource& stored = plan_.quantized->stored();
    return kept->scheme == formats::QuantScheme::kNf4 ? nf4_rows(stored, *kept)
                                                      : kept_rows(stored, *kept);
  }

  void write_companions(ir::Writer* writer, const formats::QuantizedTensor& kept) const {
    const formats::TensorSource& stored = plan_.quantized->stored();
    writer->set_scale_bytes(kept_scales(stored, kept));
    for (const formats::StoredTensor* each : kept.companions)
      writer->set_carried(each->name, stored_bytes(stored, *each));
  }

  const ImportOptions& options_;
  ImportPlan plan_;
  const ProgressCallback& progress_;
  ThreadPool pool_;
  StripeConverter converter_;
  uint64_t done_ = 0, total_ = 0;
};

}  // namespace

ImportReport import_model(const ImportOptions& options, const ProgressCallback& progress) try {
  const fs::path inputs[] = {options.input_path, options.tokenizer_path};
  guard_output(options.output_path, inputs, options.overwrite, OutputKind::kLoongIr);
  ImportPlan plan = make_import_plan(options);
  uint64_t files = plan.stored_bytes + kSpareBytes;
  for (const data::TokenizerFile& file : plan.tokenizer_files) files += file.content.size();
  if (options.dry_run) return std::move(plan.report);
  guard_space(options.output_path, files);
  return ImportRun(options, std::move(plan), progress).run();
} catch (const fs::filesystem_error& error) {
  throw_failed(error.path1().string(), error.code().message());
}

}  // namespace loongforge::convert

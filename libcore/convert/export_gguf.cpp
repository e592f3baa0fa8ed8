#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/paths.h"
#include "convert/export_check.h"
#include "convert/export_hf.h"
#include "convert/export_merge.h"
#include "convert/export_rows.h"
#include "convert/merge.h"
#include "convert/paths.h"
#include "convert/reorder.h"
#include "convert/stripes.h"
#include "data/gguf_tokenizer_keys.h"
#include "data/tokenizer.h"
#include "formats/gguf_writer.h"
#include "formats/peft.h"
#include "ir/layout.h"
#include "ir/reader.h"
#include "models/registry.h"
#include "tensor/convert.h"

namespace loongforge::convert {
namespace {

using formats::GgufOut;
using formats::GgufValue;
using tensor::DType;
namespace fs = std::filesystem;

constexpr uint64_t kSpareBytes = 1 << 20;  // header, disk blocks that are not full

struct Form {
  std::string_view name;
  GgufOut type;
  int64_t file_type;  // general.file_type
};
constexpr Form kForms[] = {{"fp32", GgufOut::kF32, 0},
                           {"fp16", GgufOut::kF16, 1},
                           {"q8_0", GgufOut::kQ8_0, 7},
                           {"bf16", GgufOut::kBF16, 32}};

const Form& form_of(const ExportOptions& options) {
  const std::string_view asked = options.dtype.empty() ? "bf16" : std::string_view(options.dtype);
  for (const Form& form : kForms) {
    if (form.name == asked) return form;
  }
  throw_usage("--dtype " + options.dtype + " is not possible with --export gguf",
              "use bf16, fp16, fp32 or q8_0");
}

DType dtype_of(GgufOut type) {
  if (type == GgufOut::kF16) return DType::kF16;
  return type == GgufOut::kBF16 ? DType::kBF16 : DType::kF32;  // Q8_0 is made of fp32
}

struct Planned {
  models::GgufTensor tensor;
  const ir::TensorEntry* entry = nullptr;       // stored
  const formats::PeftModule* module = nullptr;  // merged into it
  const std::vector<float>* values = nullptr;   // in place of an entry
  GgufOut type = GgufOut::kF32;
};

class GgufExport {
 public:
  GgufExport(const ExportOptions& options, const ProgressCallback& progress)
      : options_(options),
        progress_(progress),
        form_(form_of(options)),
        reader_(folder_with(options.input_path, ir::kModelFile, "LoongIR model")),
        model_(reader_.model()),
        pool_(std::max(1, options.threads)),
        converter_(pool_) {}

  ExportReport run() {
    report_.format = "gguf";
    report_.dtype = form_.name;
    report_.family = model_.family;
    if (!options_.adapter.empty())
      adapter_.emplace(folder_with(options_.adapter, "adapter_config.json", "PEFT adapter"));
    const models::Family& family = find_family();
    check_config(family, model_, reader_.folder());
    config_ = formats::parse_hf_config(model_.config, (reader_.folder() / ir::kModelFile).string());
    plan_ = family.to_gguf(model_, config_);
    report_.warnings = plan_.warnings;
    plan_tensors(family);
    plan_keys();
    std::vector<formats::NewGgufTensor> tensors = new_tensors();
    for (const formats::NewGgufTensor& tensor : tensors) report_.bytes += tensor.bytes();
    report_.tensors = static_cast<int64_t>(tensors.size());
    report_.weight_files = 1;
    if (options_.dry_run) return std::move(report_);
    guard_space(options_.output_path,
                report_.bytes + 2 * bytes_beside_weights(reader_.folder()) + kSpareBytes);
    write(std::move(tensors));
    return std::move(report_);
  }

 private:
  const models::Family& find_family() const {
    const models::Family* found = models::find_by_name(model_.family);
    const std::string where = (reader_.folder() / ir::kModelFile).string();
    if (found == nullptr) {
      throw_bad_data(where, "the family \"" + model_.family + "\" is not supported",
                     "known model types: " + models::known_model_types());
    }
    if (found->to_gguf == nullptr) {
      throw_bad_data(where, "the family \"" + model_.family + "\" has no GGUF form",
                     "export it with --export hf");
    }
    return *found;
  }

  void plan_tensors(const models::Family& family) {
    std::map<std::string, const formats::PeftModule*> modules;
    if (adapter_) modules = plan_merge(*adapter_, family, model_);
    for (const models::GgufTensor& each : plan_.tensors) {
      Planned planned;
      planned.tensor = each;
      planned.entry = &model_.stored_tensor(each.loongir);
      // Vectors stay fp32: llama.cpp adds and multiplies them as such.
      const bool matrix = planned.entry->shape.size() > 1;
      planned.type = matrix ? form_.type : GgufOut::kF32;
      if (planned.type == GgufOut::kQ8_0 && planned.entry->shape.back() % formats::kQ8Block != 0) {
        planned.type = GgufOut::kF16;
        report_.kept.push_back({each.name, "F16", "has rows that are no multiple of 32"});
      }
      const auto module = modules.find(planned.entry->name);
      if (module != modules.end()) planned.module = module->second;
      planned_.push_back(std::move(planned));
    }
    report_.merged = static_cast<int64_t>(modules.size());
    for (const auto& [name, values] : plan_.values) {
      Planned planned;
      planned.tensor.name = name;
      planned.values = &values;
      planned_.push_back(std::move(planned));
    }
  }

  void plan_keys() {
    const auto set = [this](const char* key, auto value) {
      keys_.emplace_back(key, GgufValue{std::move(value)});
    };
    set("general.architecture", plan_.architecture);
    set("general.type", std::string("model"));
    set("general.name", model_.model_name);
    set("general.file_type", form_.file_type);
    set("general.quantization_version", int64_t{2});
    for (auto& key : plan_.keys) keys_.push_back(key);
    const std::string folder = reader_.folder().string();
    if (!data::Tokenizer::present(folder)) {
      report_.warnings.push_back(folder + " has no tokenizer, so the GGUF file has none");
      return;
    }
    std::optional<int64_t> pad;
    if (const support::Json* own = model_.token_ids.find("pad"))
      pad = own->as_int("pad") / ir::kIdScale;
    data::GgufTokenizerKeys tokenizer = data::gguf_tokenizer_keys(folder, config_.vocab_size, pad);
    if (!tokenizer.unsaid.empty()) {
      report_.warnings.push_back(
          folder + ": the tokenizer is not put into the GGUF file: " + tokenizer.unsaid);
    }
    if (!tokenizer.warning.empty()) report_.warnings.push_back(tokenizer.warning);
    for (auto& key : tokenizer.keys) keys_.push_back(std::move(key));
  }

  std::vector<formats::NewGgufTensor> new_tensors() const {
    std::vector<formats::NewGgufTensor> out;
    for (const Planned& each : planned_) {
      out.push_back({each.tensor.name, each.type,
                     each.entry != nullptr
                         ? each.entry->shape
                         : std::vector<int64_t>{static_cast<int64_t>(each.values->size())}});
    }
    return out;
  }

  void write(std::vector<formats::NewGgufTensor> tensors) {
    if (options_.output_path.has_parent_path()) make_folders(options_.output_path.parent_path());
    formats::GgufWriter writer(options_.output_path, keys_, std::move(tensors));
    for (const Planned& each : planned_) {
      if (each.entry != nullptr) {
        write_tensor(&writer, each);
      } else {
        writer.write(each.tensor.name, {reinterpret_cast<const uint8_t*>(each.values->data()),
                                        each.values->size() * sizeof(float)});
      }
    }
    writer.finish();
    report_.files = {options_.output_path.filename().string()};
  }

  void write_tensor(formats::GgufWriter* writer, const Planned& each) {
    std::optional<LoraDelta> delta;
    if (each.module != nullptr) delta.emplace(*adapter_, *each.module);
    RowSource rows = rows_of(reader_, *each.entry, delta ? &*delta : nullptr);
    if (each.tensor.interleaved_heads > 0)
      rows = reorder_heads(std::move(rows), each.tensor.interleaved_heads, HeadOrder::kToPairs);
    std::vector<uint8_t> blocks;
    converter_.run(
        rows, dtype_of(each.type),
        [&](std::span<const uint8_t> bytes, int64_t) {
          if (each.type == GgufOut::kQ8_0) bytes = quantise(each, bytes, &blocks);
          if (each.type == GgufOut::kF16) check_f16(each, bytes);
          writer->write(each.tensor.name, bytes);
          done_ += bytes.size();
        },
        [&](int64_t) {
          if (progress_)
            progress_({std::min(done_, report_.bytes), report_.bytes, each.tensor.name});
        });
  }

  [[noreturn]] void refuse_values(const Planned& each, const char* type) const {
    throw_bad_data(reader_.folder().string() + ": " + each.entry->name,
                   "has values that are no numbers or beyond the range of " + std::string(type),
                   "export it with --dtype bf16");
  }

  std::span<const uint8_t> quantise(const Planned& each, std::span<const uint8_t> rows,
                                    std::vector<uint8_t>* blocks) {
    const auto count = static_cast<int64_t>(rows.size() / sizeof(float)) / formats::kQ8Block;
    constexpr int64_t kBlockBytes = formats::kQ8Block + 2, kBatch = 1 << 12;
    blocks->resize(static_cast<size_t>(count * kBlockBytes));
    std::atomic<bool> sound{true};
    pool_.run((count + kBatch - 1) / kBatch, [&](int64_t batch, int) {
      const int64_t first = batch * kBatch, n = std::min(kBatch, count - first);
      if (!formats::quantise_q8_0(
              reinterpret_cast<const float*>(rows.data()) + first * formats::kQ8Block, n,
              blocks->data() + first * kBlockBytes))
        sound = false;
    });
    if (!sound) refuse_values(each, "Q8_0");
    return *blocks;
  }

  void check_f16(const Planned& each, std::span<const uint8_t> rows) const {
    for (size_t i = 0; i + 1 < rows.size(); i += 2) {
      if ((rows[i + 1] & 0x7c) == 0x7c) refuse_values(each, "F16");
    }
  }

  const ExportOptions& options_;
  const ProgressCallback& progress_;
  const Form& form_;
  ir::Reader reader_;
  const ir::Model& model_;
  ThreadPool pool_;
  StripeConverter converter_;
  std::optional<formats::PeftAdapter> adapter_;
  formats::HfConfig config_;
  models::GgufPlan plan_;
  std::vector<Planned> planned_;
  formats::GgufKeys keys_;
  ExportReport report_;
  uint64_t done_ = 0;
};

// What is to be replaced must be a GGUF file, and none that is read.
void guard_file(const ExportOptions& options) {
  const fs::path& output = options.output_path;
  const fs::path inputs[] = {options.input_path, options.adapter};
  guard_place(output, inputs);
  if (output.extension() != ".gguf")
    throw_usage("the output of --export gguf is one file, " + output.string() + " is none",
                "give a name that ends in .gguf");
  if (!entry_exists(output, ErrorCode::kFailed)) return;
  if (!options.overwrite)
    throw_usage(output.string() + " exists",
                "give another output path, or --overwrite to replace it");
  if (link_exists(output) || !file_exists(output))
    throw_usage(output.string() + " is no file", "give another output path");
  const std::string begin = [&] {
    const File file = File::open_read(output);
    std::string bytes(std::min<uint64_t>(file.size(), 4), '\0');
    file.read_at(0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
    return bytes;
  }();
  if (!begin.empty() && begin != "GGUF")
    throw_usage(output.string() + " is no earlier output of this command, so it is not replaced",
                "remove it yourself, or give another output path");
}

}  // namespace

ExportReport export_gguf(const ExportOptions& options, const ProgressCallback& progress) {
  form_of(options);
  if (options.merge && options.adapter.empty()) {
    throw_usage("--merge needs --adapter", "name a PEFT folder, or a checkpoint that holds one");
  }
  if (!options.merge && !options.adapter.empty()) {
    throw_usage("--adapter needs --merge to go into a GGUF file",
                "or --export peft for the adapter alone");
  }
  guard_file(options);
  return GgufExport(options, progress).run();
}

}  // namespace loongforge::convert

#include "data/token_cache.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/checksum.h"
#include "base/env.h"
#include "base/error.h"
#include "base/paths.h"
#include "data/hash.h"

namespace loongforge::data {
namespace {

namespace fs = std::filesystem;
using support::Json;

static_assert(std::endian::native == std::endian::little);

constexpr int kFormat = 2;  // of the files, and of how samples are made
constexpr const char* kDescription = "cache.json";
constexpr const char* kTokens = "tokens.bin";
constexpr const char* kIndex = "index.bin";
constexpr size_t kWrittenAtOnce = size_t{4} << 20;
constexpr size_t kVerifiedAtOnce = size_t{32} << 20;
constexpr size_t kLarge = size_t{256} << 20;

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

template <class T>
std::span<const uint8_t> bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}

// Reads through a mapping once, giving the pages of a large one back.
uint32_t crc_of(const MappedFile& file) {
  const std::span<const uint8_t> bytes = file.bytes();
  uint32_t crc = 0;
  for (size_t at = 0; at < bytes.size(); at += kVerifiedAtOnce) {
    const size_t n = std::min(kVerifiedAtOnce, bytes.size() - at);
    crc = crc32c(bytes.subspan(at, n), crc);
    if (bytes.size() > kLarge) file.drop(at, n);
  }
  return crc;
}

void check_file(const MappedFile& file, const Json& description, const std::string& where) {
  if (static_cast<int64_t>(file.bytes().size()) != description.at("bytes", where).as_int("bytes"))
    throw_bad_data(file.path().string(),
                   "has another size than " + std::string(kDescription) + " says");
  if (static_cast<int64_t>(crc_of(file)) != description.at("crc32c", where).as_int("crc32c"))
    throw_bad_data(file.path().string(), "does not match its checksum");
}

struct Mapping {
  MappedFile tokens, index;
};

// Checksums tell accidents; whoever writes both can still lie, and what is read out of bounds later
// would be worse than an error here.
void check_samples(const SampleTable& samples, std::span<const SampleEntry> index, uint64_t words,
                   int64_t id_limit, const std::string& where) {
  uint64_t next = 0;
  for (const SampleEntry& entry : index) {
    if (entry.at != next || entry.tokens == 0 || entry.trained > entry.tokens ||
        sample_words(entry.tokens) > words - next)
      throw_bad_data(where, "its index does not fit its tokens");
    next += sample_words(entry.tokens);
  }
  if (next != words) throw_bad_data(where, "its index does not fit its tokens");
  for (size_t i = 0; i < samples.size(); ++i)
    for (const int32_t id : samples[i].ids)
      if (id < 0 || id % kIdScale != 0 || id / kIdScale >= id_limit)
        throw_bad_data(where, "holds an id that the tokenizer does not have");
}

Json file_json(uint64_t bytes, uint32_t crc) {
  Json json = Json::object();
  json.set("bytes", bytes);
  json.set("crc32c", static_cast<int64_t>(crc));
  return json;
}

}  // namespace

std::string default_token_cache() {
  const auto cache = env_text("XDG_CACHE_HOME");
  if (cache && fs::path(*cache).is_absolute())
    return (fs::path(*cache) / "loongforge" / "tokens").string();
  const auto home = env_text("HOME");
  if (!home || !fs::path(*home).is_absolute()) return {};
  return (fs::path(*home) / ".cache" / "loongforge" / "tokens").string();
}

std::string tokenizer_fingerprint(const std::string& path) {
  uint64_t hash = 0;
  uint32_t crc = 0;
  const auto add = [&](const std::string& name, const std::string& content) {
    for (const std::string& part : {name, content}) {
      hash = hash_mix(hash ^ hash_bytes(part));
      crc = crc32c(bytes_of(std::span<const char>(part)), crc);
    }
  };
  for (const TokenizerFile& file : tokenizer_files(path)) add(file.name, file.content);
  const fs::path generation = fs::path(path) / "generation_config.json";
  if (file_exists(generation)) add("generation_config.json", read_text(generation));
  return hex(hash) + "-" + std::to_string(crc);
}

fs::path TokenCacheKey::folder_in(const std::string& cache) const {
  return fs::path(cache) / (name + "-" + hex(hash_bytes(value.dump())));
}

TokenCacheKey token_cache_key(const DatasetOptions& options, const SampleReader& reader,
                              const ContentHash& content) {
  Json value = Json::object();
  value.set("format", kFormat);
  value.set("version", LF_VERSION);
  value.set("dataset_crc32c", static_cast<int64_t>(content.crc));
  value.set("dataset_hash", hex(content.wide));
  value.set("dataset_bytes", reader.bytes());
  value.set("plain_text", reader.file().extension() == ".txt");
  value.set("tokenizer", options.tokenizer_id);
  if (options.style.chat != nullptr)
    value.set("chat_template", hex(hash_bytes(options.style.chat->source())));
  else
    value.set("template", options.style.name);
  value.set("cutoff_len", options.cutoff_len);
  value.set("max_samples", options.max_samples);
  value.set("train_on_prompt", options.train_on_prompt);
  value.set("mask_history", options.mask_history);
  value.set("text_chunks", static_cast<int64_t>(options.text_chunks));
  return {reader.file().stem().string(), std::move(value)};
}

namespace {

std::optional<CachedSamples> open_described(const fs::path& folder, const TokenCacheKey& key,
                                            int64_t id_limit) {
  const fs::path path = folder / kDescription;
  const std::string where = path.string();
  std::error_code failed;
  if (!fs::exists(path, failed)) return std::nullopt;
  const Json description = support::read_json(where);
  if (!(description.at("key", where) == key.value))
    throw_bad_data(where, "belongs to another dataset, tokenizer or choice of options");
  auto mapping =
      std::make_shared<Mapping>(Mapping{MappedFile(folder / kTokens), MappedFile(folder / kIndex)});
  check_file(mapping->tokens, description.at("tokens_file", where), where);
  check_file(mapping->index, description.at("index_file", where), where);
  const std::span<const uint8_t> tokens = mapping->tokens.bytes(), index = mapping->index.bytes();
  if (tokens.size() % sizeof(int32_t) != 0 || index.size() % sizeof(SampleEntry) != 0)
    throw_bad_data(where, "its files hold no whole number of samples");
  const std::span<const int32_t> words(reinterpret_cast<const int32_t*>(tokens.data()),
                                       tokens.size() / sizeof(int32_t));
  const std::span<const SampleEntry> entries(reinterpret_cast<const SampleEntry*>(index.data()),
                                             index.size() / sizeof(SampleEntry));
  CachedSamples cached;
  const MappedFile& mapped = mapping->tokens;
  cached.samples = SampleTable(mapping, words, entries);
  check_samples(cached.samples, entries, words.size(), id_limit, where);
  if (tokens.size() > kLarge) mapped.drop(0, tokens.size());
  DatasetCounts& counts = cached.counts;
  counts.samples = static_cast<int64_t>(entries.size());
  counts.prompts_cut = description.at("prompts_cut", where).as_int("prompts_cut");
  counts.answers_cut = description.at("answers_cut", where).as_int("answers_cut");
  for (const SampleEntry& entry : entries) {
    counts.tokens += entry.tokens;
    counts.trained_tokens += entry.trained;
  }
  return cached;
}

}  // namespace

std::optional<CachedSamples> open_token_cache(const fs::path& folder, const TokenCacheKey& key,
                                              int64_t id_limit) {
  return support::in_file((folder / kDescription).string(),
                          [&] { return open_described(folder, key, id_limit); });
}

void TokenCacheWriter::Stream::write(std::span<const uint8_t> more) {
  pending.insert(pending.end(), more.begin(), more.end());
  bytes += more.size();
  if (pending.size() >= kWrittenAtOnce) finish();
}

void TokenCacheWriter::Stream::finish() {
  crc = crc32c(pending, crc);
  file.write(pending);
  pending.clear();
}

TokenCacheWriter::TokenCacheWriter(const fs::path& folder, TokenCacheKey key)
    : key_(std::move(key)), folder_(folder, true, kDescription) {
  tokens_.emplace(folder_.temporary() / kTokens);
  index_.emplace(folder_.temporary() / kIndex);
}

void TokenCacheWriter::add(const Sample& sample) {
  words_.clear();
  SampleEntry entry = append_sample(sample, words_);
  entry.at = tokens_->bytes / sizeof(int32_t);
  tokens_->write(bytes_of(std::span<const int32_t>(words_)));
  index_->write(bytes_of(std::span<const SampleEntry>(&entry, 1)));
}

void TokenCacheWriter::finish(const DatasetCounts& counts) {
  for (Stream* stream : {&*tokens_, &*index_}) {
    stream->finish();
    stream->file.close();
  }
  Json description = Json::object();
  description.set("key", key_.value);
  description.set("samples", counts.samples);
  description.set("prompts_cut", counts.prompts_cut);
  description.set("answers_cut", counts.answers_cut);
  description.set("tokens_file", file_json(tokens_->bytes, tokens_->crc));
  description.set("index_file", file_json(index_->bytes, index_->crc));
  write_text_atomic(folder_.temporary() / kDescription, description.dump(2) + "\n");
  folder_.commit();
}

}  // namespace loongforge::data

#include "data/dataset.h"

#include <optional>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "data/sample_reader.h"
#include "data/token_cache.h"

namespace loongforge::data {
namespace {

std::optional<CachedSamples> read_cache(const std::filesystem::path& folder,
                                        const TokenCacheKey& key, const Tokenizer& tokenizer) {
  try {
    return open_token_cache(folder, key, tokenizer.vocab_size());
  } catch (const Error& e) {
    log_warning(std::string("the token cache is made anew: ") + e.what());
    return std::nullopt;
  }
}

// Faults of the data pass; one of the cache ends in nothing, and a line that says so.
std::optional<CachedSamples> write_cache(const std::filesystem::path& folder,
                                         const TokenCacheKey& key, const DatasetOptions& options,
                                         const Tokenizer& tokenizer) {
  SampleReader reader(options, tokenizer);
  std::optional<TokenCacheWriter> writer;
  const auto written = [&](auto&& write) {
    try {
      write();
      return true;
    } catch (const Error& e) {
      log_warning(std::string("the tokenised samples are kept in memory only: ") + e.what());
      return false;
    }
  };
  if (!written([&] { writer.emplace(folder, key); })) return std::nullopt;
  for (Sample sample; reader.next(sample);)
    if (!written([&] { writer->add(sample); })) return std::nullopt;
  if (!written([&] { writer->finish(reader.counts()); })) return std::nullopt;
  std::optional<CachedSamples> cached;
  written([&] { cached = open_token_cache(folder, key, tokenizer.vocab_size()); });
  return cached;
}

}  // namespace

Dataset Dataset::load(const DatasetOptions& options, const Tokenizer& tokenizer) {
  SampleReader reader(options, tokenizer);
  Dataset dataset;
  dataset.file_ = reader.file();
  const ContentHash content = reader.content_hash();
  dataset.hash_ = content.crc;
  if (!options.token_cache.empty() && reader.bytes() >= options.token_cache_from) {
    const TokenCacheKey key = token_cache_key(options, reader, content);
    const std::filesystem::path folder = key.folder_in(options.token_cache);
    std::optional<CachedSamples> cached = read_cache(folder, key, tokenizer);
    dataset.from_cache_ = cached.has_value();
    if (!cached) cached = write_cache(folder, key, options, tokenizer);
    if (cached && dataset.from_cache_ && options.text_chunks != TextChunks::kRecord) {
      Sample first;  // says so where the chunks have no effect
      reader.next(first);
    }
    if (cached) {
      dataset.samples_ = std::move(cached->samples);
      dataset.counts_ = cached->counts;
      return dataset;
    }
  }
  SampleTableBuilder samples;
  for (Sample sample; reader.next(sample);) samples.add(sample);
  dataset.samples_ = samples.finish();
  dataset.counts_ = reader.counts();
  return dataset;
}

}  // namespace loongforge::data

#include "data/dataset.h"

#include "data/sample_reader.h"

namespace loongforge::data {

Dataset Dataset::load(const DatasetOptions& options, const Tokenizer& tokenizer) {
  SampleReader reader(options, tokenizer);
  Dataset dataset;
  dataset.file_ = reader.file();
  dataset.hash_ = reader.content_hash();
  SampleTableBuilder samples;
  for (Sample sample; reader.next(sample);) samples.add(sample);
  dataset.samples_ = samples.finish();
  dataset.counts_ = reader.counts();
  return dataset;
}

}  // namespace loongforge::data

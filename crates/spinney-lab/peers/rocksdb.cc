// RocksDB: a write batch a commit. Options as its page "Setup Options and Basic Tuning" has them.
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include <memory>

#include "store.h"

namespace {

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

void check(const rocksdb::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
}

class RocksDb : public Store {
  public:
    RocksDb(const std::string& path, Level level) {
        rocksdb::Options options;
        options.create_if_missing = true;
        options.level_compaction_dynamic_level_bytes = true;
        options.max_background_jobs = 2;
        options.bytes_per_sync = 1048576;
        options.compaction_pri = rocksdb::kMinOverlappingRatio;
        rocksdb::BlockBasedTableOptions table;
        table.block_size = 16 * 1024;
        table.cache_index_and_filter_blocks = true;
        table.pin_l0_filter_and_index_blocks_in_cache = true;
        table.format_version = 5;
        table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
        options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
        rocksdb::DB* opened;
        check(rocksdb::DB::Open(options, path, &opened));
        db.reset(opened);
        writing.sync = level == Level::Durable;
        writing.disableWAL = level == Level::None;
    }
    // Without a log what is in memory would be lost by an orderly end, too.
    ~RocksDb() override {
        if (writing.disableWAL) db->Flush({});
    }
    void begin() override { batch.Clear(); }
    void put(std::string_view key, std::string_view value) override {
        check(batch.Put(slice(key), slice(value)));
    }
    void remove(std::string_view key) override { check(batch.Delete(slice(key))); }
    void clear(char table) override {
        char end = table + 1;
        check(batch.DeleteRange({&table, 1}, {&end, 1}));
    }
    void commit() override { check(db->Write(writing, &batch)); }
    bool get(std::string_view key, std::string* value) override {
        rocksdb::Status status = db->Get({}, slice(key), value);
        if (status.IsNotFound()) return false;
        check(status);
        return true;
    }
    void scan(std::string_view from,
              const std::function<bool(std::string_view, std::string_view)>& each) override {
        std::unique_ptr<rocksdb::Iterator> at(db->NewIterator({}));
        for (at->Seek(slice(from)); at->Valid(); at->Next()) {
            if (!each(view(at->key()), view(at->value()))) break;
        }
        check(at->status());
    }
    bool before(std::string_view bound, std::string* key) override {
        std::unique_ptr<rocksdb::Iterator> at(db->NewIterator({}));
        at->SeekForPrev(slice(bound));
        if (at->Valid() && view(at->key()) == bound) at->Prev();
        check(at->status());
        if (!at->Valid()) return false;
        *key = at->key().ToString();
        return true;
    }
    void settle() override { check(db->Flush({})); }

  private:
    std::unique_ptr<rocksdb::DB> db;
    rocksdb::WriteOptions writing;
    rocksdb::WriteBatch batch;
};

}  // namespace

int main(int count, char** arguments) {
    std::string version = std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." +
                          std::to_string(ROCKSDB_PATCH);
    return serve(count, arguments, version,
                 [](const std::string& path, Level level) { return new RocksDb(path, level); });
}

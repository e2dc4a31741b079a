// Kyoto Cabinet, TreeDB with its defaults: a transaction a commit; a hard one, which is synced, where it is
// to be durable, and none where nothing need survive.
#include <kcpolydb.h>

#include <memory>

#include "store.h"

namespace {

class Kyoto : public Store {
  public:
    Kyoto(const std::string& path, Level level) : level(level) {
        check(db.open(path + "/store.kct", kyotocabinet::TreeDB::OWRITER | kyotocabinet::TreeDB::OCREATE));
    }
    ~Kyoto() override { db.close(); }
    void begin() override {
        if (level != Level::None) check(db.begin_transaction(level == Level::Durable));
    }
    void put(std::string_view key, std::string_view value) override {
        check(db.set(key.data(), key.size(), value.data(), value.size()));
    }
    void remove(std::string_view key) override {
        if (!db.remove(key.data(), key.size()) &&
            db.error().code() != kyotocabinet::BasicDB::Error::NOREC)
            check(false);
    }
    void commit() override {
        if (level != Level::None) check(db.end_transaction(true));
    }
    bool get(std::string_view key, std::string* value) override {
        size_t len;
        char* found = db.get(key.data(), key.size(), &len);
        if (!found) return false;
        value->assign(found, len);
        delete[] found;
        return true;
    }
    void scan(std::string_view from,
              const std::function<bool(std::string_view, std::string_view)>& each) override {
        std::unique_ptr<kyotocabinet::TreeDB::Cursor> at(db.cursor());
        if (!at->jump(from.data(), from.size())) return;
        while (true) {
            size_t key_len, value_len;
            const char* value;
            char* key = at->get(&key_len, &value, &value_len, true);
            if (!key) return;
            bool goes_on = each({key, key_len}, {value, value_len});
            delete[] key;
            if (!goes_on) return;
        }
    }
    bool before(std::string_view bound, std::string* key) override {
        std::unique_ptr<kyotocabinet::TreeDB::Cursor> at(db.cursor());
        if (!at->jump_back(bound.data(), bound.size())) return false;
        return at->get_key(key);
    }
    void settle() override { check(db.synchronize(false)); }

  private:
    void check(bool done) {
        if (!done) throw std::runtime_error(db.error().message());
    }
    kyotocabinet::TreeDB db;
    Level level;
};

}  // namespace

int main(int count, char** arguments) {
    return serve(count, arguments, kyotocabinet::VERSION,
                 [](const std::string& path, Level level) { return new Kyoto(path, level); });
}

// tkrzw, TreeDBM with its defaults. It has no transactions: a commit is its edits one after the other, then
// a hard synchronisation where it is to be durable, a soft one where it is to survive the process.
#include <tkrzw_dbm_tree.h>
#include <tkrzw_lib_common.h>

#include <memory>

#include "store.h"

namespace {

void check(const tkrzw::Status& status) {
    if (!status.IsOK()) throw std::runtime_error(tkrzw::ToString(status));
}

class Tkrzw : public Store {
  public:
    Tkrzw(const std::string& path, Level level) : level(level) {
        check(db.Open(path + "/store.tkt", true));
    }
    ~Tkrzw() override { db.Close(); }
    void begin() override {}
    void put(std::string_view key, std::string_view value) override { check(db.Set(key, value)); }
    void remove(std::string_view key) override {
        tkrzw::Status status = db.Remove(key);
        if (status != tkrzw::Status::NOT_FOUND_ERROR) check(status);
    }
    void commit() override {
        if (level != Level::None) check(db.Synchronize(level == Level::Durable));
    }
    bool get(std::string_view key, std::string* value) override {
        tkrzw::Status status = db.Get(key, value);
        if (status == tkrzw::Status::NOT_FOUND_ERROR) return false;
        check(status);
        return true;
    }
    void scan(std::string_view from,
              const std::function<bool(std::string_view, std::string_view)>& each) override {
        std::unique_ptr<tkrzw::DBM::Iterator> at = db.MakeIterator();
        check(at->Jump(from));
        std::string key, value;
        while (at->Get(&key, &value).IsOK()) {
            if (!each(key, value)) break;
            check(at->Next());
        }
    }
    bool before(std::string_view bound, std::string* key) override {
        std::unique_ptr<tkrzw::DBM::Iterator> at = db.MakeIterator();
        if (at->Jump(bound).IsOK() && at->Get(key).IsOK()) {
            return at->Previous().IsOK() && at->Get(key).IsOK();
        }
        // 1.0.25 does not know the last page of a tree that was opened again: what it takes for that has
        // others behind it.
        if (!at->Last().IsOK() || !at->Get(key).IsOK()) return false;
        while (at->Next().IsOK() && at->Get(key).IsOK()) {}
        return true;
    }
    void settle() override { check(db.Synchronize(false)); }

  private:
    tkrzw::TreeDBM db;
    Level level;
};

}  // namespace

int main(int count, char** arguments) {
    return serve(count, arguments, tkrzw::PACKAGE_VERSION,
                 [](const std::string& path, Level level) { return new Tkrzw(path, level); });
}

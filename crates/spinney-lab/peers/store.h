// A store of ordered keys behind a pipe: what a peer's program must have, and the loop that serves it.
//
// A message is its length (4 bytes, lowest first) and so many bytes, both ways. A request begins with a
// letter: `W` a commit of edits (each a letter `P`, `D` or `C`, a table, a key and a value), `G` a value,
// `S` the records from a key on until an answer is full, `L` the greatest key, `F` the end of background
// work. An answer begins with `0`, or with `1` and the text of an error. Texts have their lengths before
// them. End of input is the end of the program, which closes its store.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// Bytes of an answer to `S`, after which it ends.
constexpr size_t SCAN_MAX = 256 << 10;

enum class Level { Durable, Process, None };

// Keys have the byte of their table in front.
class Store {
  public:
    virtual ~Store() = default;
    virtual void begin() = 0;
    virtual void put(std::string_view key, std::string_view value) = 0;
    virtual void remove(std::string_view key) = 0;
    // Not by a cursor that removes: Kyoto Cabinet then syncs for each record.
    virtual void clear(char table) {
        std::vector<std::string> keys;
        scan(std::string(1, table), [&](std::string_view key, std::string_view) {
            if (key[0] != table) return false;
            keys.emplace_back(key);
            return true;
        });
        for (const std::string& key : keys) remove(key);
    }
    virtual void commit() = 0;
    virtual bool get(std::string_view key, std::string* value) = 0;
    // Records from `from` on, until `each` says that it is enough.
    virtual void scan(std::string_view from,
                      const std::function<bool(std::string_view, std::string_view)>& each) = 0;
    // The greatest key below `bound`; whether there is one.
    virtual bool before(std::string_view bound, std::string* key) = 0;
    virtual void settle() = 0;
};

inline bool read_all(char* to, size_t len) {
    while (len > 0) {
        ssize_t got = ::read(0, to, len);
        if (got <= 0) return false;
        to += got;
        len -= got;
    }
    return true;
}

inline void write_all(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
        ssize_t put = ::write(1, text.data() + at, text.size() - at);
        if (put <= 0) throw std::runtime_error("the pipe is closed");
        at += put;
    }
}

inline void push_text(std::string* out, std::string_view text) {
    uint32_t len = text.size();
    out->append(reinterpret_cast<const char*>(&len), 4);
    out->append(text);
}

class Request {
  public:
    explicit Request(std::string_view rest) : rest(rest) {}
    bool at_end() const { return rest.empty(); }
    char letter() { return take(1)[0]; }
    std::string_view text() {
        uint32_t len;
        std::memcpy(&len, take(4).data(), 4);
        return take(len);
    }

  private:
    std::string_view take(size_t len) {
        if (rest.size() < len) throw std::runtime_error("a request is cut off");
        std::string_view taken = rest.substr(0, len);
        rest.remove_prefix(len);
        return taken;
    }
    std::string_view rest;
};

inline void answer(Store* store, Request request, std::string* out) {
    switch (request.letter()) {
        case 'W':
            store->begin();
            while (!request.at_end()) {
                char kind = request.letter();
                std::string_view key = request.text();
                std::string_view value = request.text();
                if (kind == 'P') store->put(key, value);
                if (kind == 'D') store->remove(key);
                if (kind == 'C') store->clear(key[0]);
            }
            store->commit();
            break;
        case 'G': {
            std::string value;
            bool found = store->get(request.text(), &value);
            out->push_back(found ? 1 : 0);
            push_text(out, value);
            break;
        }
        case 'S': {
            std::string_view from = request.text();
            char table = from[0];
            std::string records;
            bool is_full = false;
            store->scan(from, [&](std::string_view key, std::string_view value) {
                if (key.empty() || key[0] != table) return false;
                is_full = records.size() >= SCAN_MAX;
                if (is_full) return false;
                push_text(&records, key.substr(1));
                push_text(&records, value);
                return true;
            });
            out->push_back(is_full ? 1 : 0);
            out->append(records);
            break;
        }
        case 'L': {
            char table = request.letter();
            std::string key;
            bool found = store->before(std::string(1, table + 1), &key) && key[0] == table;
            out->push_back(found ? 1 : 0);
            push_text(out, found ? std::string_view(key).substr(1) : std::string_view());
            break;
        }
        case 'F':
            store->settle();
            break;
        default:
            throw std::runtime_error("a request is of no known kind");
    }
}

// Serves the store that `open` makes of a path and a level, or prints `version`.
inline int serve(int count, char** arguments, const std::string& version,
                 const std::function<Store*(const std::string&, Level)>& open) {
    if (count == 2 && std::string_view(arguments[1]) == "--version") {
        std::cout << version << std::endl;
        return 0;
    }
    if (count != 3) {
        std::cerr << "expected a path and `durable`, `process` or `none`" << std::endl;
        return 2;
    }
    std::string_view word = arguments[2];
    Level level = word == "durable" ? Level::Durable : word == "process" ? Level::Process : Level::None;
    Store* store = nullptr;
    std::string request, out;
    uint32_t len;
    while (read_all(reinterpret_cast<char*>(&len), 4)) {
        request.resize(len);
        if (!read_all(request.data(), len)) break;
        out.assign(5, '\0');
        try {
            if (!store) store = open(arguments[1], level);
            answer(store, Request(request), &out);
        } catch (const std::exception& error) {
            out.assign(5, '\0');
            out[4] = 1;
            push_text(&out, error.what());
        }
        len = out.size() - 4;
        std::memcpy(out.data(), &len, 4);
        write_all(out);
    }
    delete store;
    return 0;
}

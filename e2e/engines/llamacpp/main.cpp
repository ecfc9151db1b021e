// Asks llama.cpp's own converter and grammar engine what a model could write
// under a schema. It is compiled against the sources in the npm package llama.rn,
// needs no model, and speaks the lines of JSON that docs/prove.md describes.
#include "build-info.h"
#include "json-schema-to-grammar.h"
#include "llama-grammar.h"
#include "nlohmann/json.hpp"
#include "unicode.h"

#include <iostream>
#include <memory>
#include <random>
#include <string>

using json = nlohmann::ordered_json;

// A grammar is one that was loaded; it is cloned for each text.
using grammar_ptr = std::unique_ptr<llama_grammar, decltype(&llama_grammar_free_impl)>;

static grammar_ptr load(const std::string & text) {
    return { llama_grammar_init_impl(nullptr, text.c_str(), "root", false, nullptr, 0, nullptr, 0), llama_grammar_free_impl };
}

static bool ended(const llama_grammar_stacks & stacks) {
    for (const auto & s : stacks) {
        if (s.empty()) return true;
    }
    return false;
}

// accepts reports whether the whole text is one that the grammar can end with.
static bool accepts(const llama_grammar & grammar, const std::string & text) {
    grammar_ptr g(llama_grammar_clone_impl(grammar), llama_grammar_free_impl);
    for (uint32_t c : unicode_cpts_from_utf8(text)) {
        llama_grammar_accept(g.get(), c);
        if (llama_grammar_get_stacks(g.get()).empty()) return false;
    }
    return ended(llama_grammar_get_stacks(g.get()));
}

// choices are the ranges of characters with which a stack can go on. What is not
// allowed by an inverse class leaves some printable characters, a quotation mark
// and a backslash, which are where engines go wrong.
static std::vector<uint32_t> choices(const llama_grammar_stack & stack) {
    std::vector<std::pair<uint32_t, uint32_t>> ranges;
    const llama_grammar_element * pos = stack.back();
    const bool inverse = pos->type == LLAMA_GRETYPE_CHAR_NOT;
    std::vector<uint32_t> out;
    const std::vector<uint32_t> alphabet = { 'a', 'Z', '0', '7', ' ', '-', '.', '/', '"', '\\', '{', '}', '\n', '\t', 0xe9, 0x4e16 };
    if (pos->type == LLAMA_GRETYPE_CHAR_ANY) return alphabet;
    do {
        uint32_t low = pos->value, high = low;
        if (pos[1].type == LLAMA_GRETYPE_CHAR_RNG_UPPER) {
            high = pos[1].value;
            pos++;
        }
        ranges.push_back({ low, high });
        pos++;
    } while (pos->type == LLAMA_GRETYPE_CHAR_ALT);
    if (!inverse) {
        for (auto [low, high] : ranges) {
            out.push_back(low);
            if (high != low) { out.push_back(high); out.push_back(low + (high - low) / 2); }
        }
        return out;
    }
    for (uint32_t c : alphabet) {
        bool in = false;
        for (auto [low, high] : ranges) in = in || (c >= low && c <= high);
        if (!in) out.push_back(c);
    }
    return out;
}

static void append_utf8(std::string & s, uint32_t c) { s += unicode_cpt_to_utf8(c); }

// sample walks through the grammar at random. After limit characters it takes
// what closes, where it can, and gives up at four times that.
static std::string sample(const llama_grammar & grammar, std::mt19937_64 & random, size_t limit, bool & whole) {
    grammar_ptr g(llama_grammar_clone_impl(grammar), llama_grammar_free_impl);
    std::string text;
    for (size_t n = 0; n < 4 * limit; n++) {
        const auto & stacks = llama_grammar_get_stacks(g.get());
        if (ended(stacks) && (stacks.size() == 1 || random() % 2 == 0)) { whole = true; return text; }
        std::vector<uint32_t> next, closing, exponents; // numbers beyond all bounds prove nothing
        for (const auto & s : stacks) {
            if (s.empty()) continue;
            for (uint32_t c : choices(s)) {
                if ((c == ' ' || c == '\n' || c == '\t') && !text.empty() && text.back() == char(c)) continue;
                if ((c == 'e' || c == 'E') && !text.empty() && isdigit((unsigned char) text.back())) { exponents.push_back(c); continue; }
                next.push_back(c);
                if (c == '"' || c == '}' || c == ']') closing.push_back(c);
            }
        }
        if (n > limit && !closing.empty()) next = closing;
        if (next.empty()) next = exponents;
        if (next.empty()) break;
        const uint32_t c = next[random() % next.size()];
        append_utf8(text, c);
        llama_grammar_accept(g.get(), c);
        if (llama_grammar_get_stacks(g.get()).empty()) break;
    }
    whole = ended(llama_grammar_get_stacks(g.get()));
    return text;
}

static json answer(const json & request, grammar_ptr & grammar) {
    const std::string op = request.at("op");
    if (op == "hello") return { { "engine", "llama.cpp" }, { "version", "b" + std::to_string(llama_build_number()) } };
    if (op == "load") {
        grammar = load(json_schema_to_grammar(request.at("schema"), true));
        if (!grammar) return { { "error", "the grammar made of the schema cannot be parsed" } };
        return { { "ok", true } };
    }
    if (!grammar) return { { "error", "no schema is loaded" } };
    json out = json::array();
    if (op == "accepts") {
        for (const auto & text : request.at("texts")) out.push_back(accepts(*grammar, text.get<std::string>()));
        return { { "accepted", out } };
    }
    if (op == "sample") {
        std::mt19937_64 random(request.at("seed").get<uint64_t>());
        const size_t limit = request.at("limit").get<size_t>();
        for (int i = 0; i < request.at("count").get<int>(); i++) {
            bool whole = false;
            std::string text = sample(*grammar, random, limit, whole);
            if (whole) out.push_back(text);
        }
        return { { "texts", out } };
    }
    return { { "error", "unknown op" } };
}

int main() {
    grammar_ptr grammar(nullptr, llama_grammar_free_impl);
    for (std::string line; std::getline(std::cin, line);) {
        json reply;
        try {
            reply = answer(json::parse(line), grammar);
        } catch (const std::exception & e) {
            reply = { { "error", e.what() } };
        }
        std::cout << reply.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
    }
}

// What the converter and the grammar engine of llama.cpp ask of the rest of it,
// as far as they get there without a model: words about texts, the log, and a
// vocabulary that is never there.
#include "common.h"
#include "llama-impl.h"
#include "llama-vocab.h"

#include <cstdarg>
#include <cstdio>
#include <stdexcept>

std::string string_join(const std::vector<std::string> & values, const std::string & separator) {
    std::string out;
    for (size_t i = 0; i < values.size(); i++) {
        if (i > 0) out += separator;
        out += values[i];
    }
    return out;
}

std::vector<std::string> string_split(const std::string & text, const std::string & delimiter) {
    std::vector<std::string> parts;
    size_t from = 0;
    for (size_t to; (to = text.find(delimiter, from)) != std::string::npos; from = to + delimiter.size()) {
        parts.push_back(text.substr(from, to - from));
    }
    parts.push_back(text.substr(from));
    return parts;
}

std::string string_repeat(const std::string & text, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; i++) out += text;
    return out;
}

void llama_log_internal(lm_ggml_log_level, const char * format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

extern "C" void lm_ggml_abort(const char * file, int line, const char *, ...) {
    throw std::runtime_error(std::string("llama.cpp gives up at ") + file + ":" + std::to_string(line));
}

static std::runtime_error no_model() { return std::runtime_error("the grammar asks for a vocabulary, and there is no model"); }

bool llama_vocab::is_eog(llama_token) const { throw no_model(); }
const std::string & llama_vocab::token_to_piece(llama_token) const { throw no_model(); }
int32_t llama_vocab::tokenize(const char *, int32_t, llama_token *, int32_t, bool, bool) const { throw no_model(); }

#!/bin/sh
# Builds the engines that are not ready to run: llama.cpp's converter and grammar
# engine from the sources in the npm package llama.rn, and Ollama's types from
# their Go module. What cannot be built is said, and the others go on.
cd "$(dirname "$0")" || exit 1
mkdir -p bin
failed=0

llama=node_modules/llama.rn/cpp
cxx=${CXX:-g++}
if ! command -v "$cxx" >/dev/null; then
  echo "engines: llama.cpp needs a C++ compiler ($cxx); without one its grammars are not asked" >&2
  failed=1
elif [ ! -d "$llama" ]; then
  echo "engines: the npm package llama.rn is not installed; run npm ci in this folder" >&2
  failed=1
else
  "$cxx" -std=c++17 -O1 -w -I$llama -I$llama/common -o bin/llamacpp llamacpp/main.cpp llamacpp/outside.cpp \
    $llama/common/json-schema-to-grammar.cpp $llama/common/build-info.cpp \
    $llama/llama-grammar.cpp $llama/unicode.cpp $llama/unicode-data.cpp || failed=1
fi
"${GO:-go}" build -C ../ollama -o ../engines/bin/ollama . || failed=1
exit $failed

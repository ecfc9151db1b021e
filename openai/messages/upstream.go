package messages

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// efforts are the efforts of the Chat API for those of this one.
var efforts = map[string]string{"low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}

// thinkers are the models, by dialect, whose APIs document reasoning_effort. Others may
// refuse a request for it, and clients such as Claude Code always say an effort.
var thinkers = map[string][]string{
	"openai":        {"o1*", "o3*", "o4*", "gpt-5*", "gpt-6*", "codex*"},
	"openai-strict": {"o1*", "o3*", "o4*", "gpt-5*", "gpt-6*", "codex*"},
	"azure":         {"o1*", "o3*", "o4*", "gpt-5*", "gpt-6*", "codex*"},
	"gemini":        {"gemini-2.5*", "gemini-3*"},
	"groq":          {"*gpt-oss*"},
	"openrouter":    {"*"},
	"vllm":          {"*gpt-oss*"},
	"sglang":        {"*gpt-oss*"},
	"ollama":        {"*gpt-oss*"},
	"llamacpp":      {"*gpt-oss*"},
	"lmstudio":      {"*gpt-oss*"},
}

// topK are the dialects whose APIs know top_k.
var topK = []string{"vllm", "sglang", "llamacpp", "lmstudio", "openrouter", "tgi", "qwen"}

// completionTokens are the dialects whose APIs want max_completion_tokens: their newer
// models refuse max_tokens.
var completionTokens = []string{"openai", "openai-strict", "azure"}

// chat returns the request as the upstream half takes it.
func (r *Request) chat(d *dialect.Dialect) model.Request {
	o := &rawjson.Object{}
	o.Set("model", rawjson.Quote(r.upstream))
	copied := func(name, as string) {
		if value := r.object.Get(name); !rawjson.IsNull(value) {
			o.Set(as, value)
		}
	}
	if slices.Contains(completionTokens, d.Name()) {
		copied("max_tokens", "max_completion_tokens")
	} else {
		copied("max_tokens", "max_tokens")
	}
	copied("temperature", "temperature")
	copied("top_p", "top_p")
	if slices.Contains(topK, d.Name()) {
		copied("top_k", "top_k")
	}
	if len(r.stops) > 0 {
		o.Set("stop", r.object.Get("stop_sequences"))
	}
	if effort := efforts[r.effort]; effort != "" && thinks(d.Name(), r.upstream) {
		o.Set("reasoning_effort", rawjson.Quote(effort))
	}
	if r.format != nil {
		o.Set("response_format", r.format)
	}
	if r.oneCall {
		o.Set("parallel_tool_calls", json.RawMessage("false"))
	}
	if r.Stream {
		o.Set("stream", json.RawMessage("true"))
		o.Set("stream_options", json.RawMessage(`{"include_usage":true}`))
	}
	return model.Request{
		Object: o, Tools: r.tools, Names: r.names, Withholds: r.withholds, Choice: r.choice, OneCall: r.oneCall, Asked: len(r.Servers) > 0,
		Deferred: len(r.Servers) > 0 && !slices.ContainsFunc(r.Servers, func(c model.ServerChoice) bool { return !c.DeferLoading }),
	}
}

func thinks(dialect, name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	return slices.ContainsFunc(thinkers[dialect], func(pattern string) bool { return glob.Match(pattern, name) })
}

package result

import (
	"fmt"
	"strings"
)

// A Profile is a form in which a result is put before a model.
type Profile string

// The profiles. The zero Profile means Envelope.
const (
	// Envelope is one JSON object {"status","data","meta"}.
	Envelope Profile = "envelope"
	// Text is a readable rendering followed by the envelope in a fenced json
	// block, for models that were trained on text more than on tool results.
	Text Profile = "text"
	// Structured is the data alone; the envelope where there is more to say: an
	// error, a note, parts beside the data, something cut.
	Structured Profile = "structured"
	// Raw is the MCP result: content, structuredContent and isError, and
	// truncated where something was cut.
	Raw Profile = "raw"
)

// ParseProfile returns the profile of that name; Envelope for "".
func ParseProfile(name string) (Profile, error) {
	switch p := Profile(name); p {
	case "":
		return Envelope, nil
	case Envelope, Text, Structured, Raw:
		return p, nil
	}
	return "", fmt.Errorf("unknown result profile %q: want envelope, text, structured or raw", name)
}

// ProfileFor returns the profile for a model that nobody configured, by its
// name: Text for the families that are reported to overlook structured results
// (Qwen and QwQ before the third generation, Llama before the third, ChatGLM),
// Envelope for the rest.
func ProfileFor(model string) Profile {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, family := range []string{"qwen-", "qwen1", "qwen2", "qwen:", "qwq", "llama2", "llama-2", "chatglm"} {
		if strings.HasPrefix(name, family) {
			return Text
		}
	}
	return Envelope
}

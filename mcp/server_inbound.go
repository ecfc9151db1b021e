package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/toolcall"
)

const codeParse = -32700

// An inbound is a message of a client, judged once: what was judged is what is
// passed on.
type inbound struct {
	id      json.RawMessage // nil for a notification
	method  string          // empty for an answer to a request of ours
	members *rawjson.Object // of params, without _meta
	meta    *rawjson.Object
	result  json.RawMessage // of an answer; nil for an error
	modern  bool
	version string        // modern: of the protocol
	can     dragoman.Kind // modern: what the client declared
	tasks   bool          // modern: it declared TasksExtension
	unread  error         // why the arguments of a tool are not among the members: no I-JSON
	// early are answers that came without the state of a question of ours.
	early map[string]json.RawMessage

	// What is taken apart, with room for what most messages have.
	message, params, about rawjson.Object
	room                   struct{ message, params, about [5]rawjson.Member }
}

// newInbound returns a message of which nothing has been read.
func newInbound() *inbound {
	in := &inbound{}
	in.message.Members, in.params.Members, in.about.Members = in.room.message[:0], in.room.params[:0], in.room.about[:0]
	in.members, in.meta = &in.params, &in.about
	return in
}

// take takes a member out of the params.
func (in *inbound) take(name string) json.RawMessage {
	for i := range in.params.Members {
		if in.params.Members[i].Name == name {
			value := in.params.Members[i].Value
			in.params.Members = slices.Delete(in.params.Members, i, i+1)
			return value
		}
	}
	return nil
}

// readInbound reads one message strictly: I-JSON, version 2.0, an id that is a
// string or an integer, params that are an object. Where only a tool's arguments are
// no I-JSON, that is left to be told as the call's result.
func readInbound(b []byte) (*inbound, *RPCError) {
	b = bytes.TrimPrefix(b, byteOrderMark)
	in := newInbound()
	o := &in.message
	err := o.Read(b)
	if err != nil && !errors.Is(err, rawjson.ErrCrowded) {
		if rest, arguments, ok := toolcall.Apart(b); ok {
			in.unread, err = rawjson.Check(arguments), o.Read(rest)
		}
	}
	switch {
	case errors.Is(err, rawjson.ErrCrowded):
		return nil, &RPCError{Code: codeInvalidRequest, Message: "the message is too large: " + err.Error()}
	case errors.Is(err, rawjson.ErrNoObject):
		return nil, &RPCError{Code: codeInvalidRequest, Message: "a message is a JSON object; batches are not taken"}
	case err != nil:
		return nil, &RPCError{Code: codeParse, Message: "not JSON: " + err.Error()}
	}
	in.id, in.result = o.Get("id"), o.Get("result")
	if v, _ := rawjson.String(o.Get("jsonrpc")); v != "2.0" {
		return in.unlessNull(), &RPCError{Code: codeInvalidRequest, Message: `"jsonrpc" is not "2.0"`}
	}
	if in.id != nil && !validID(in.id) {
		in.id = nil
		return in, &RPCError{Code: codeInvalidRequest, Message: "an id is a string or an integer"}
	}
	if m := o.Get("method"); m != nil {
		if in.method, _ = rawjson.String(m); in.method == "" {
			return in, &RPCError{Code: codeInvalidRequest, Message: "a method is a string that is not empty"}
		}
	} else if in.id == nil || (in.result == nil) == (o.Get("error") == nil) {
		return in, &RPCError{Code: codeInvalidRequest, Message: "neither a request, nor a notification, nor an answer"}
	}
	if params := o.Get("params"); params != nil {
		if rawjson.Kind(params) != '{' {
			return in, &RPCError{Code: codeInvalidParams, Message: "params are an object"}
		}
		_ = in.params.Parse(params) // the message was checked
		if meta := in.take("_meta"); meta != nil {
			if rawjson.Kind(meta) != '{' {
				return in, &RPCError{Code: codeInvalidParams, Message: "_meta is an object"}
			}
			_ = in.about.Parse(meta)
		}
	}
	return in, nil
}

func (in *inbound) unlessNull() *inbound {
	if !validID(in.id) {
		in.id = nil
	}
	return in
}

func validID(id json.RawMessage) bool {
	switch rawjson.Kind(id) {
	case '"':
		return true
	case '0':
		_, err := strconv.ParseInt(string(bytes.TrimSpace(id)), 10, 64)
		return err == nil
	}
	return false
}

// judgeEra finds out the era of a request and, in the modern one, reads what each
// request says about its client. header is the version in the HTTP header; empty
// without one.
func (in *inbound) judgeEra(header string) *RPCError {
	version := in.meta.Get(metaVersion)
	in.modern = version != nil || in.method == "server/discover" || header >= modernVersions[0]
	if !in.modern || in.method == "" {
		return nil
	}
	if in.method == "initialize" {
		return &RPCError{Code: codeMethodNotFound, Message: "there is no initialize in the modern era"}
	}
	if in.id == nil {
		in.version = header
		return nil // notifications need not say anything
	}
	in.version, _ = rawjson.String(version)
	switch {
	case in.version == "":
		return &RPCError{Code: codeInvalidParams, Message: "_meta lacks " + metaVersion}
	case header != "" && header != in.version:
		return mismatch(headerVersion)
	case !slices.Contains(modernVersions, in.version):
		return unsupported(in.version)
	case rawjson.Kind(in.meta.Get(metaCapabilities)) != '{':
		return &RPCError{Code: codeInvalidParams, Message: "_meta lacks " + metaCapabilities}
	}
	capabilities := in.meta.Get(metaCapabilities)
	in.can = declaredBy(capabilities)
	in.tasks = rawjson.Kind(rawjson.Get(rawjson.Get(capabilities, "extensions"), TasksExtension)) == '{'
	return nil
}

func unsupported(version string) *RPCError {
	data := rawjson.Object{}
	var supported []json.RawMessage
	for _, v := range modernVersions {
		supported = append(supported, rawjson.Quote(v))
	}
	data.Set("supported", rawjson.AppendArray(nil, supported))
	data.Set("requested", rawjson.Quote(version))
	return &RPCError{Code: codeUnsupportedVersion, Message: "this version of the protocol is not spoken here", Data: data.Bytes()}
}

// declaredBy reads what a client says that it can be asked. An elicitation
// capability without modes means forms (MCP 2025-11-25, "Elicitation").
func declaredBy(capabilities json.RawMessage) (can dragoman.Kind) {
	has := func(in []byte, name string) bool { return rawjson.Kind(rawjson.Get(in, name)) == '{' }
	if has(capabilities, "roots") {
		can |= dragoman.AskRoots
	}
	if has(capabilities, "sampling") {
		can |= dragoman.AskSampling
		if has(rawjson.Get(capabilities, "sampling"), "tools") {
			can |= dragoman.AskTools
		}
	}
	if has(capabilities, "elicitation") {
		modes := rawjson.Get(capabilities, "elicitation")
		if has(modes, "url") {
			can |= dragoman.AskURL
		}
		if has(modes, "form") || !has(modes, "url") {
			can |= dragoman.AskForm
		}
	}
	return can
}

// name returns what a Mcp-Name header has to say; false where there is none.
func (in *inbound) name() (string, bool) {
	key := ""
	switch in.method {
	case "tools/call", "prompts/get":
		key = "name"
	case "resources/read":
		key = "uri"
	case methodTaskGet, methodTaskUpdate, methodTaskCancel:
		key = "taskId"
	default:
		return "", false
	}
	s, _ := rawjson.String(in.members.Get(key))
	return s, true
}

// call makes a call of a request. In the modern era a repeated request has the
// answers in it.
func (in *inbound) call() dragoman.Call {
	call := dragoman.Call{Method: in.method, Can: in.can, TakesTask: in.tasks && in.method == methodTool}
	if in.method == methodTool {
		if task := in.take("task"); !in.modern { // where it means nothing any more
			call.Task = task
		}
	}
	if in.modern && takesInput(in.method) {
		responses, state := in.take("inputResponses"), in.take("requestState")
		var replies map[string]json.RawMessage
		if responses != nil || state != nil {
			replies = map[string]json.RawMessage{}
			for _, m := range object(responses).Members {
				replies[m.Name] = m.Value
			}
		}
		if state != nil {
			text, _ := rawjson.String(state)
			call.Answers = &dragoman.Answers{Replies: replies}
			call.Answers.State, _ = base64.RawURLEncoding.DecodeString(text)
		} else {
			in.early = replies
		}
	}
	if len(in.members.Members) > 0 {
		call.Arguments = in.members.Bytes()
	}
	meta := rawjson.Object{}
	for _, m := range in.meta.Members {
		if !wireKey(m.Name) {
			meta.Set(m.Name, m.Value)
		}
	}
	if len(meta.Members) > 0 {
		call.Meta = meta.Bytes()
	}
	return call
}

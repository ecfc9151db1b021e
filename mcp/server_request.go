package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"math"
	"runtime/debug"
)

// A sink takes messages to a client. It does not block for long.
type sink interface {
	// send sends a message that is not the answer. It reports false where the client
	// cannot hear it.
	send(msg []byte) bool
}

// An incomingRequest is one request that is being answered.
type incomingRequest struct {
	server *Server
	host   Host
	in     *inbound
	to     sink
	conn   *legacyPeer // of a legacy client; nil in the modern era

	room [5]rawjson.Member // for what a result has
}

// answer returns the answer to the request: a whole message.
func (v *incomingRequest) answer(ctx context.Context) (msg []byte, failed *RPCError) {
	return v.message(v.result(ctx))
}

// message makes the answer of a result, or of an error.
func (v *incomingRequest) message(result json.RawMessage, err error) (msg []byte, failed *RPCError) {
	if err == nil {
		return reply(v.in.id, result, nil), nil
	}
	e, ok := errors.AsType[*RPCError](err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled):
		e = &RPCError{Code: codeInternal, Message: "the request was cancelled"}
	default:
		e = &RPCError{Code: codeInternal, Message: "the request failed here"}
	}
	return replyError(v.in.id, e), e
}

// replyError returns an answer that is an error, with its data. id may be nil.
func replyError(id json.RawMessage, e *RPCError) []byte {
	if id == nil {
		id = json.RawMessage(`null`)
	}
	b := reply(id, nil, e)
	if e.Data != nil {
		b = append(append(b[:len(b)-2], `,"data":`...), e.Data...)
		b = append(b, `}}`...)
	}
	return b
}

func (v *incomingRequest) result(ctx context.Context) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &dragoman.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	switch {
	case v.in.method == "server/discover":
		return discovery(v.host.Describe(ctx)), nil
	case v.in.modern && legacyOnly(v.in.method):
		return nil, &RPCError{Code: codeMethodNotFound, Message: "there is no " + bounded(v.in.method, 60) + " in the modern era"}
	case v.conn != nil && v.in.method == methodTaskUpdate:
		return nil, &RPCError{Code: codeMethodNotFound, Message: "tasks/update is of the modern era"}
	case v.in.unread != nil:
		return v.finished(ctx, unreadable(v.in.unread))
	case v.in.modern && aboutTask(v.in.method):
		if err := v.mayUseTasks(ctx); err != nil {
			return nil, err
		}
	case v.in.modern && v.in.method == listenMethod:
		return v.listen(ctx)
	case v.conn != nil:
		if result, err, ours := v.conn.own(ctx, v); ours {
			return result, err
		}
	}
	return v.run(ctx)
}

// unreadable is the result of a call whose arguments a model has to write anew (MCP
// 2025-11-25, "Tools", Error Handling: what is wrong with an input is told in a result).
func unreadable(err error) json.RawMessage {
	text := rawjson.Quote("The tool did not run. Its arguments are not read as they are: " + bounded(err.Error(), 300) + ". Write them again, with each name once and whole characters.")
	return append(append([]byte(`{"content":[{"type":"text","text":`), text...), `}],"isError":true}`...)
}

// legacyOnly reports whether a method ended with the legacy era (MCP 2026-07-28,
// changelog).
func legacyOnly(method string) bool {
	switch method {
	case "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", methodTaskResult, methodTaskList:
		return true
	}
	return false
}

// run makes the call, and makes it again with the answers: as long as it asks a legacy
// client, once for a modern one that brought them along.
func (v *incomingRequest) run(ctx context.Context) (json.RawMessage, error) {
	call := v.in.call()
	v.forwardNotifications(&call)
	ctx = observe.WithProtocol(ctx, v.version())
	legs := v.modernLegs
	if !v.in.modern {
		legs = v.legacyLegs
	}
	switch res, err := legs(ctx, call); {
	case err != nil:
		return nil, err
	case res.Problem != nil:
		return nil, v.rpcError(res.Problem)
	case res.Asks != nil:
		return inputRequired(res.Asks), nil
	default:
		return v.finished(ctx, res.Content)
	}
}

// version is that of the protocol that the client speaks.
func (v *incomingRequest) version() string {
	if v.conn != nil && !v.in.modern {
		return v.conn.version
	}
	return modernVersions[0]
}

// modernLegs makes a call of a modern client, which is asked by the answer and makes the
// call again itself: only what it answered in advance needs a second leg here. Where there is
// nothing to ask, it would do so at once, and what wants to be called later is waited for here.
func (v *incomingRequest) modernLegs(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	res, err := v.host.Call(ctx, call)
	if err == nil && res.Problem == nil && res.Asks != nil && v.in.answersEarly(res.Asks) {
		call.Answers = &dragoman.Answers{State: res.Asks.State, Ran: res.Ran, Replies: v.in.early}
		res, err = v.host.Call(ctx, call)
	}
	if err == nil && res.Problem == nil && res.Asks != nil && len(res.Asks.Questions) == 0 && sleep(ctx, res.Asks.After) != nil {
		return dragoman.Result{Ran: res.Ran}, context.Cause(ctx)
	}
	return res, err
}

// legacyLegs makes a call of a legacy client, which is asked while it waits. Why nobody
// answered is the error of the request.
func (v *incomingRequest) legacyLegs(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	var unheard error
	loop := dragoman.Loop{Tools: hosted{v.host}, Ask: func(ctx context.Context, _ dragoman.Call, asks *dragoman.Asks) (answers *dragoman.Answers, err error) {
		answers, unheard = v.ask(ctx, asks)
		return answers, unheard
	}}
	res, err := loop.Call(ctx, call)
	if unheard != nil && (errors.Is(err, unheard) || res.Problem != nil && errors.Is(res.Problem, unheard)) {
		err = unheard // and not a question that the server took back before
	}
	return res, err
}

// hosted is a host as the toolset of a [dragoman.Loop], which only calls it.
type hosted struct{ Host }

// List implements [dragoman.Toolset]: what a host offers is asked for by calls.
func (hosted) List(context.Context) (*dragoman.List, error) { return &dragoman.List{}, nil }

// forwardNotifications sends the client what it wants to hear while the call runs.
func (v *incomingRequest) forwardNotifications(call *dragoman.Call) {
	least := v.in.meta.Get(metaLogLevel)
	if v.conn != nil {
		call.Can = v.conn.can
		least = usualLevel
		level := v.conn.level.Load()
		if level != nil {
			least = *level
		}
		if level == nil && call.Meta == nil {
			call.Meta = usualMeta
		} else {
			meta := object(call.Meta).Clone()
			meta.Set(metaLogLevel, least)
			call.Meta = meta.Bytes()
		}
	}
	if token := v.in.meta.Get("progressToken"); token != nil && validID(token) {
		call.Progress = func(p dragoman.Progress) {
			v.to.send(notification("notifications/progress", progressParams(token, p)))
		}
	}
	if least == nil {
		return // a modern client hears of nothing that it did not ask for
	}
	call.Notify = func(n dragoman.Notification) {
		if n.Method == "notifications/message" && severity(object(n.Params).Get("level")) >= severity(least) {
			v.to.send(notification(n.Method, n.Params))
		}
	}
}

// usualLevel is that of log messages for a legacy client that has set none, in which case
// the server may choose (MCP 2025-11-25, Logging).
var usualLevel = json.RawMessage(`"info"`)

// usualMeta is the _meta that says so.
var usualMeta = json.RawMessage(`{"` + metaLogLevel + `":"info"}`)

// severity ranks the levels of log messages (RFC 5424, as MCP names them). A level
// that nobody knows, and none, ranks lowest.
func severity(level json.RawMessage) int {
	name, _ := rawjson.String(level)
	return slices.Index([]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}, name)
}

func progressParams(token json.RawMessage, p dragoman.Progress) json.RawMessage {
	o := rawjson.Object{}
	o.Set("progressToken", token)
	o.Set("progress", appendNumber(p.Progress))
	if p.Total != 0 {
		o.Set("total", appendNumber(p.Total))
	}
	if p.Message != "" {
		o.Set("message", rawjson.Quote(p.Message))
	}
	return o.Bytes()
}

func appendNumber(f float64) json.RawMessage {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return json.RawMessage(`0`)
	}
	return strconv.AppendFloat(nil, f, 'g', -1, 64)
}

// rpcError makes an error of JSON-RPC of a problem. An error that another server
// answered with is passed on where it is about the request, and not about what is
// between that server and us.
func (v *incomingRequest) rpcError(p *dragoman.Problem) *RPCError {
	if e, ok := errors.AsType[*RPCError](p); ok {
		const first, last = -32768, -32000 // codes that JSON-RPC and MCP have kept
		switch {
		case e.Code == codeInvalidParams, e.Code == codeMissingCapability, e.Code < first, e.Code > last,
			e.Code == codeURLRequired && !v.in.modern,
			e.Code == codeMethodNotFound && !takesInput(v.in.method):
			return e
		}
	}
	e := &RPCError{Code: codeInternal, Message: p.Message}
	switch p.Code {
	case dragoman.CodeUnknownTool, dragoman.CodeInvalidArguments, dragoman.CodeTruncated, dragoman.CodeInvalidTool:
		e.Code = codeInvalidParams
	}
	data := rawjson.Object{}
	data.Set("code", rawjson.Quote(p.Code))
	if p.RetryAfter > 0 {
		data.Set("retry_after", strconv.AppendInt(nil, int64(math.Ceil(p.RetryAfter.Seconds())), 10))
	}
	if p.AuditID != "" {
		data.Set("audit_id", rawjson.Quote(p.AuditID))
	}
	e.Data = data.Bytes()
	return e
}

// cacheable are the methods whose results say how long they are fresh (MCP
// 2026-07-28, "Caching").
var cacheable = map[string]bool{
	"tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true, "resources/read": true,
}

// finished returns a result with the members that the modern era wants. One that is no
// object is an error there, and not a result with nothing in it.
func (v *incomingRequest) finished(ctx context.Context, content json.RawMessage) (json.RawMessage, error) {
	if content == nil {
		content = json.RawMessage(`{}`)
	}
	if !v.in.modern {
		return content, nil
	}
	if bytes.HasPrefix(content, []byte(completeList)) {
		return content, nil
	}
	o := rawjson.Object{Members: v.room[:0]}
	if err := o.Parse(content); err != nil {
		return nil, fmt.Errorf("the result is no JSON object: %w", err)
	}
	var members []byte
	if o.Get("resultType") == nil {
		members = complete
	}
	if cacheable[v.in.method] && o.Get("ttlMs") == nil {
		members = append(members[:len(members):len(members)], freshness(v.host.Describe(ctx))...)
	}
	if members == nil {
		return content, nil
	}
	if len(o.Members) == 0 {
		return append(append([]byte{'{'}, members[:len(members)-1]...), '}'), nil
	}
	content = bytes.TrimSpace(content)[1:]
	b := append(make([]byte, 0, 1+len(members)+len(content)), '{')
	return append(append(b, members...), content...), nil
}

// complete is the member that says that a result is one.
var complete = []byte(`"resultType":"complete",`)

// completeList is how a list begins that lacks nothing.
const completeList = `{"resultType":"complete","ttlMs":`

// CompleteList returns the beginning of the result of a list request up to the
// list itself, with all that the modern era wants: a list of megabytes that a
// [Host] keeps ready is not looked at again with each request.
func CompleteList(ttl time.Duration, public bool) string {
	return `{"resultType":"complete",` + string(freshness(Description{TTL: ttl, Public: public}))
}

func freshness(d Description) []byte {
	scope := "private"
	if d.Public {
		scope = "public"
	}
	return fmt.Appendf(nil, `"ttlMs":%d,"cacheScope":"%s",`, d.TTL.Milliseconds(), scope)
}

// discovery is the answer to server/discover.
func discovery(d Description) json.RawMessage {
	b := append([]byte(`{"resultType":"complete",`), freshness(d)...)
	o := rawjson.Object{}
	var supported []json.RawMessage
	for _, v := range append(modernVersions[:len(modernVersions):len(modernVersions)], legacyVersions...) {
		supported = append(supported, rawjson.Quote(v))
	}
	o.Set("supportedVersions", rawjson.AppendArray(nil, supported))
	o.Set("capabilities", d.capabilities(Modern))
	if d.Instructions != "" {
		o.Set("instructions", rawjson.Quote(d.Instructions))
	}
	meta := object(d.Meta).Clone()
	meta.Set(metaServer, orEmpty(d.Info))
	o.Set("_meta", meta.Bytes())
	return append(b, o.Bytes()[1:]...)
}

func orEmpty(b json.RawMessage) json.RawMessage {
	if b == nil {
		return json.RawMessage(`{}`)
	}
	return b
}

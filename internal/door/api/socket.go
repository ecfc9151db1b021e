package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// Over a WebSocket a client makes one response after another: each message asks for one,
// as the body of a POST does, and its events come back as messages. What is particular to
// it is that a response can be gone on from on its connection whether it is stored or not.

// Bounds of a connection.
const (
	// socketLife is how long new responses can be asked for, and socketGrace how much
	// longer the one that is being made may take.
	socketLife  = 60 * time.Minute
	socketGrace = 10 * time.Minute
	// socketPong is how long a client may take to answer a sign of life, which it gets
	// every door.LifeSign, and to take an event.
	socketPong = time.Minute
	// socketWaiting is how many requests may wait, which together are as large as one may be.
	socketWaiting = 16
	// socketKept bounds the responses that are kept for the connection alone, in bytes.
	socketKept = 16 << 20
	// socketsEach is how many connections one caller may have.
	socketsEach = 100
)

// Codes of errors on a connection. They are stable.
const (
	codeSocketOver    = "websocket_connection_limit_reached" // as OpenAI has it
	codeSocketEvent   = "unknown_event"
	codeNotOverSocket = "not_supported_over_websocket"
)

// A socket is one connection.
type socket struct {
	state   *State
	conn    *websocket.Conn
	asked   *http.Request // which opened it
	who     caller.Caller
	near    responses.Memory // responses that it can go on from
	queue   chan []byte
	waiting atomic.Int64 // bytes in queue
}

// webSocket answers GET /v1/responses.
func (a *API) webSocket(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	switch {
	case !upgrades(r) && a.Upstreams.First().Speaks(upstream.Responses):
		a.relay(w, r, who) // whatever it has there
		return
	case !upgrades(r):
		e := &model.Error{
			Status: http.StatusUpgradeRequired, Type: model.TypeInvalidRequest, Code: model.CodeInvalidRequest,
			Message: "Responses come by POST, or by WebSocket.",
		}
		if r.ProtoMajor < 2 { // beyond, clients take an answer with these for broken (RFC 9113 section 8.2.2)
			e.Header = http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}
		}
		a.fail(w, r, e)
		return
	}
	leave, err := a.State.sockets.enter(who.ID)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer leave()
	// Whether the page that asks may was found out at the front, as for every route.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // it has answered
	}
	defer func() { _ = conn.CloseNow() }()
	most := a.MaxBody
	if most <= 0 {
		most = door.DefaultMaxBody
	}
	conn.SetReadLimit(most)
	s := &socket{state: a.State, conn: conn, asked: r, who: who, queue: make(chan []byte, socketWaiting)}
	s.near.Bytes, s.near.TTL = socketKept, socketLife+socketGrace
	s.serve(r.Context(), most)
}

// upgrades reports whether a request wants to become a WebSocket.
func upgrades(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") }

// Why a connection ends.
var (
	errClientLeft = fmt.Errorf("the client left: %w", context.Canceled)
	errSilent     = errors.New("the client does not answer signs of life")
)

// serve answers what is asked until either side ends the connection.
func (s *socket) serve(ctx context.Context, most int64) {
	ctx, cut := context.WithTimeoutCause(ctx, s.state.sockets.life+socketGrace, errors.New("the connection was open too long"))
	defer cut()
	ctx, end := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer func() { end(nil); _ = s.conn.CloseNow() }()
	beside.Go(func() { s.listen(ctx, end, most) })
	beside.Go(func() { s.beat(ctx, end) })
	over := make(chan struct{})
	life := time.AfterFunc(s.state.sockets.life, func() { close(over) })
	defer life.Stop()
	stopping := s.state.sockets.stopping
	for {
		select { // what ends it comes first: of several that are ready any may be taken
		case <-over:
			s.tell(&model.Error{Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: codeSocketOver, Message: "The connection was open for 60 minutes, which is the longest: open another one."})
			_ = s.conn.Close(websocket.StatusNormalClosure, codeSocketOver)
			return
		case <-stopping:
			_ = s.conn.Close(websocket.StatusGoingAway, "the gateway stops: open another connection")
			return
		case <-ctx.Done():
			s.close(context.Cause(ctx))
			return
		default:
		}
		select {
		case <-over:
		case <-stopping:
		case <-ctx.Done():
		case message := <-s.queue:
			s.waiting.Add(-int64(len(message)))
			s.take(ctx, message)
		}
	}
}

// close ends the connection for a reason of its context's.
func (s *socket) close(why error) {
	switch {
	case errors.Is(why, errClientLeft):
	case errors.Is(why, errSilent):
		_ = s.conn.Close(websocket.StatusPolicyViolation, errSilent.Error())
	default:
		_ = s.conn.Close(websocket.StatusPolicyViolation, "what showed who asks is not good any more, or the gateway stops")
	}
}

// listen reads what the client asks, until it leaves.
func (s *socket) listen(ctx context.Context, end context.CancelCauseFunc, most int64) {
	for {
		kind, message, err := s.conn.Read(context.WithoutCancel(ctx)) // else the connection breaks where it is to be closed
		switch {
		case err != nil:
			end(errClientLeft)
			return
		case kind != websocket.MessageText:
			s.tell(model.Invalid("", "Messages are texts here."))
			continue
		}
		if s.waiting.Add(int64(len(message))) > most {
			s.waiting.Add(-int64(len(message)))
			s.tell(tooManyWait())
			continue
		}
		select {
		case s.queue <- message:
		default:
			s.waiting.Add(-int64(len(message)))
			s.tell(tooManyWait())
		}
	}
}

func tooManyWait() *model.Error {
	return &model.Error{Status: http.StatusTooManyRequests, Type: model.TypeRateLimit, Code: "too_many_requests", Message: "Too much waits on this connection for its turn: one response is made at a time."}
}

// beat sends signs of life, and ends a connection whose client answers none.
func (s *socket) beat(ctx context.Context, end context.CancelCauseFunc) {
	ticker := time.NewTicker(door.LifeSign)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), socketPong)
		err := s.conn.Ping(wait)
		cancel()
		if err != nil {
			end(errSilent)
			return
		}
	}
}

// send sends an event. The client has a time to take it.
func (s *socket) send(event []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), socketPong)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, event)
}

// tell sends an error as an event.
func (s *socket) tell(e *model.Error) { _ = s.send(socketError(e.Status, e.Header, e.JSON())) }

// toldHeaders are the headers of an error that its event has, too.
var toldHeaders = []string{"Retry-After", "X-Should-Retry", "X-Dragoman-Tools", "X-Dragoman-Missing"}

// socketError is the event for an error, of the header and the body that it has over HTTP.
func socketError(status int, header http.Header, body []byte) []byte {
	o := &rawjson.Object{}
	o.Set("type", rawjson.Quote("error"))
	o.Set("status", json.RawMessage(fmt.Sprint(status)))
	var failure json.RawMessage
	if said, err := rawjson.ParseObject(body); err == nil {
		failure = said.Get("error")
	}
	if rawjson.IsNull(failure) {
		failure = json.RawMessage(`{"message":"The request failed here. The log tells more.","type":"server_error","code":"server_error","param":null}`)
	}
	o.Set("error", failure)
	var told rawjson.Object
	for _, name := range toldHeaders {
		if value := header.Get(name); value != "" {
			told.Set(strings.ToLower(name), rawjson.Quote(value))
		}
	}
	if len(told.Members) > 0 {
		o.Set("headers", told.Bytes())
	}
	return o.Bytes()
}

// take answers one message.
func (s *socket) take(ctx context.Context, message []byte) {
	a := s.state.door.Load() // as it is now
	ctx = observe.WithRequest(ctx, model.NewRequestID())
	r := s.request(ctx)
	out := &socketWriter{socket: s, header: http.Header{}}
	body, generate, err := asked(message)
	if err == nil && a.Overloaded != nil {
		err = a.Overloaded()
	}
	switch {
	case err != nil:
		a.fail(out, r, err)
	case !generate:
		if err := s.prepare(a, out, r, body); err != nil {
			a.fail(out, r, err)
		}
	default:
		r.Body, r.ContentLength = door.ReadAgain(body), int64(len(body))
		s.answer(a, out, r)
	}
	if out.end() {
		s.forget(body)
	}
}

// forget forgets, of what this connection alone keeps, the response that a request that was
// refused goes on from (Open Responses, WebSocket): its client begins anew.
func (s *socket) forget(body []byte) {
	if o, err := rawjson.ParseObject(body); err == nil {
		if id, ok := rawjson.String(o.Get("previous_response_id")); ok {
			_, _ = s.near.Delete(context.Background(), s.who.ID, id)
		}
	}
}

// answer answers a request as it would by POST.
func (s *socket) answer(a *API, out *socketWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
			panic(p)
		}
	}()
	wire := responsesWire
	wire.read = func(a *API, r *http.Request, who caller.Caller, body []byte) (asking, error) {
		return a.readResponse(r, who, body, &nearby{a.State.Responses, &s.near}, s.keep)
	}
	// What is not stored is gone on from here alone, so that nothing is passed on of which we
	// would know nothing, but what names no model.
	here := func(body []byte) bool { return namesModel(body) || ours(body) }
	a.orNative(upstream.Responses, here, a.ask(wire))(out, r, s.who, &idempotency.Run{})
}

// keep keeps a response for those that go on from it here.
func (s *socket) keep(r *responses.Stored) { _ = s.near.Put(context.Background(), s.who.ID, r) }

// request returns the request that a message is, without its body.
func (s *socket) request(ctx context.Context) *http.Request {
	r := s.asked.Clone(ctx)
	r.Method, r.Body, r.ContentLength = http.MethodPost, http.NoBody, 0
	for name := range r.Header {
		if strings.HasPrefix(name, "Sec-Websocket-") {
			delete(r.Header, name)
		}
	}
	for _, name := range []string{"Upgrade", "Connection", keyHeader} {
		r.Header.Del(name)
	}
	if strings.HasPrefix(r.Header.Get("OpenAI-Beta"), "responses_websockets") { // clients ask for the connection with it
		r.Header.Del("OpenAI-Beta")
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

// asked takes a message for what it asks: the body of a POST, whose answer streams, and
// whether a response is to be made at all.
func asked(message []byte) (body []byte, generate bool, err error) {
	o, err := rawjson.Read(message)
	switch {
	case errors.Is(err, rawjson.ErrNoObject):
		return nil, false, model.Invalid("", "A message must be a JSON object.")
	case err != nil:
		return nil, false, model.InvalidBody(err)
	}
	refuse := func(code, param, words string) ([]byte, bool, error) {
		return nil, false, &model.Error{Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: code, Param: param, Message: words}
	}
	switch kind, _ := rawjson.String(o.Get("type")); {
	case kind == "response.steer":
		return refuse(codeNotOverSocket, "type", "A response is not steered here while it is made: wait for its end, and go on from it with previous_response_id.")
	case kind != "response.create":
		return refuse(codeSocketEvent, "type", fmt.Sprintf("Messages of the type %.60q are not known here: send response.create.", kind))
	case !rawjson.IsNull(o.Get("stream_id")):
		return refuse(codeNotOverSocket, "stream_id", "One response is made at a time here: leave \"stream_id\" out, or open another connection for each lane.")
	case string(o.Get("background")) == "true":
		return refuse(codeNotOverSocket, "background", "Responses in the background are asked for by POST.")
	}
	generate = true
	if given := o.Get("generate"); !rawjson.IsNull(given) {
		if generate, err = model.Boolean(o, "generate"); err != nil {
			return nil, false, err
		}
	}
	for _, name := range []string{"type", "generate", "background", "stream_id", "stream_options"} {
		o.Delete(name)
	}
	o.Set("stream", json.RawMessage("true"))
	return o.Bytes(), generate, nil
}

// prepare answers a request for no response yet, from which a later one goes on.
func (s *socket) prepare(a *API, out *socketWriter, r *http.Request, body []byte) error {
	q, err := a.readResponse(r, s.who, body, &nearby{a.State.Responses, &s.near}, s.keep)
	if err != nil {
		return err
	}
	leave, err := a.admit(r.Context(), s.who, policy.Model, q.Model)
	if err != nil {
		return err
	}
	defer leave()
	if q.Conversation != "" {
		return model.Invalid("generate", "Nothing is prepared in a conversation: leave \"generate\" out.")
	}
	stored, events := responses.Prepare(q.Request)
	s.keep(stored)
	for _, event := range events {
		if err := s.send(event); err != nil {
			return err
		}
	}
	out.sent = true
	return nil
}

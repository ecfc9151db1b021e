package result

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman"
)

// ReadMore is the name of the tool that gives the rest of what was cut.
const ReadMore = "read_more"

const readMoreDefinition = `{"name":"read_more","title":"Read more of a result",` +
	`"description":"Returns more of an earlier tool result that was cut. Take handle, pointer and unit from meta.truncated.cut of that result, and give its shown as offset. ` +
	`The answer holds total, count, offset, items, has_more and next_offset; go on with next_offset while has_more is true.",` +
	`"inputSchema":{"type":"object","properties":{` +
	`"handle":{"type":"string","description":"The handle in meta.truncated, or that of binary data."},` +
	`"pointer":{"type":"string","description":"JSON pointer of the value in the message that was cut, such as /data/items. Without it all of the data."},` +
	`"offset":{"type":"integer","minimum":0,"description":"How many units to skip. Without it none."},` +
	`"limit":{"type":"integer","minimum":1,"description":"How many units to return at most. Without it as many as fit."},` +
	`"unit":{"type":"string","enum":["items","members","characters","lines","json","bytes"],"description":"What to count. Without it what suits the value: items of a list, members of an object, characters of a text. lines reads a text by lines, json any value as its JSON text."}` +
	`},"required":["handle"],"additionalProperties":false},` +
	`"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`

// ReadMoreTool returns the definition of read_more.
func ReadMoreTool() dragoman.Tool { return readMoreTool() }

var readMoreTool = sync.OnceValue(func() dragoman.Tool {
	var entry struct {
		Title, Description string
		InputSchema        json.RawMessage
	}
	definition := []byte(readMoreDefinition)
	if err := json.Unmarshal(definition, &entry); err != nil {
		panic("result: the definition of read_more: " + err.Error())
	}
	yes, no := true, false
	return dragoman.Tool{
		Definition: definition, Name: ReadMore, Original: ReadMore,
		Title: entry.Title, Description: entry.Description, InputSchema: entry.InputSchema,
		Hints:    dragoman.Hints{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
		Declared: dragoman.ReadOnly,
		Pin:      dragoman.Pin("", ReadMore, definition),
	}
})

// handles is how messages spell handles of their own, of the whole or of binary data.
var handles = regexp.MustCompile(`"handle":"[a-z2-7]{16}(\.b[0-9]+)?"`)

// HasHandle reports whether the text of a message has a handle, so that read_more is to be
// offered where the message comes back with a history.
func HasHandle(text string) bool { return handles.MatchString(text) }

// For returns the toolset of one caller: read_more on that caller's results.
func (s *Shelf) For(caller string) dragoman.Toolset { return shelfTools{s, caller} }

// Around returns a toolset that runs what tools does, and read_more on a caller's results,
// for the loop of a conversation whose shapes have this shelf. It does not list read_more:
// the conversation offers it once there is more to read.
func (s *Shelf) Around(caller string, tools dragoman.Toolset) dragoman.Toolset {
	return shelved{tools, s.For(caller)}
}

type shelved struct {
	dragoman.Toolset
	shelf dragoman.Toolset
}

func (r shelved) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if t := call.Tool; t != nil && t.Server == "" && t.Original == ReadMore {
		return r.shelf.Call(ctx, call)
	}
	return r.Toolset.Call(ctx, call)
}

type shelfTools struct {
	shelf  *Shelf
	caller string
}

var _ dragoman.Toolset = shelfTools{}

var shelfList = sync.OnceValue(func() *dragoman.List {
	return &dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{ReadMoreTool()})}
})

func (t shelfTools) List(context.Context) (*dragoman.List, error) { return shelfList(), nil }

func (t shelfTools) Call(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
	if err := ctx.Err(); err != nil {
		return dragoman.Result{}, err
	}
	if c.Problem != nil {
		return dragoman.Result{Problem: c.Problem}, nil
	}
	if c.Tool != nil && c.Tool.Original != ReadMore && c.Tool.Name != ReadMore {
		return dragoman.Failure(dragoman.CodeUnknownTool, "Nobody offers a tool of that name here."), nil
	}
	res := t.shelf.read(ctx, t.caller, c.Arguments)
	if res.Ran = dragoman.RanYes; res.Problem != nil {
		res.Ran = dragoman.RanNot
	}
	return res, nil
}

// isPage reports whether the result of a call is a page of read_more.
func isPage(c *dragoman.Call) bool {
	return c.Tool != nil && c.Tool.Server == "" && c.Tool.Original == ReadMore
}

// A request is the arguments of read_more.
type request struct {
	Handle  string `json:"handle"`
	Pointer string `json:"pointer"`
	Offset  int    `json:"offset"`
	Limit   *int   `json:"limit"`
	Unit    Unit   `json:"unit"`
}

// Read runs read_more with its JSON arguments for a caller. The result is the
// page as structuredContent, small enough for a message of the limit under
// which the result was cut; what is wrong with the arguments is a Problem that
// says how to go on.
//
// A page holds total, count, offset, items, has_more, next_offset (null at the
// end) and unit. items is an array for items and lines, an object for members,
// a string for characters, json and bytes (base64). The pages of a value put
// together are that value. When the first item of a page is too big for it, the
// page holds what fits and says in cut, as meta.truncated does, where the rest
// is.
func (s *Shelf) Read(caller string, arguments json.RawMessage) dragoman.Result {
	return s.read(context.Background(), caller, arguments)
}

func (s *Shelf) read(ctx context.Context, caller string, arguments json.RawMessage) dragoman.Result {
	var req request
	if err := json.Unmarshal(arguments, &req); err != nil {
		field := dragoman.Field{Expected: "an object with a handle"}
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
			field = dragoman.Field{Path: "/" + e.Field, Expected: map[bool]string{true: "an integer", false: "a string"}[e.Field == "offset" || e.Field == "limit"]}
		}
		if name := field.Name(); name != "" {
			return wrong(fmt.Sprintf("The argument %q is wrong: it must be %s.", name, field.Expected), field)
		}
		return wrong("The arguments cannot be read: they must be "+field.Expected+".", field)
	}
	base, part, _ := strings.Cut(req.Handle, ".")
	k := s.get(ctx, caller, base)
	if k == nil {
		return wrong("The handle is unknown or has expired. If the tool that gave the result changes nothing, call it again; else go on with what you have.",
			dragoman.Field{Path: "/handle", Expected: "a handle from meta.truncated of a recent result", Missing: req.Handle == ""})
	}
	if req.Offset < 0 {
		return wrong("The offset is negative.", dragoman.Field{Path: "/offset", Expected: "0 or more"})
	}
	if req.Limit != nil && *req.Limit < 1 {
		return wrong("The limit is below 1.", dragoman.Field{Path: "/limit", Expected: "1 or more, or no limit"})
	}
	p, problem := k.find(&req, part)
	if problem != nil {
		return dragoman.Result{Problem: problem}
	}
	return p.result()
}

func wrong(message string, field dragoman.Field) dragoman.Result {
	return dragoman.Result{Problem: badArgument(message, field)}
}

func badArgument(message string, field dragoman.Field) *dragoman.Problem {
	return &dragoman.Problem{Code: dragoman.CodeInvalidArguments, Message: message, Fields: []dragoman.Field{field}}
}

// find resolves what is asked for and reads it.
func (k *kept) find(req *request, part string) (*page, *dragoman.Problem) {
	p := &page{request: req, room: k.limit - pageOverhead, most: math.MaxInt}
	if req.Limit != nil {
		p.most = *req.Limit
	}
	if number, ok := strings.CutPrefix(part, "b"); ok {
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(k.blobs) {
			return nil, badHandle()
		}
		return p.bytes(k.blobs[i])
	}
	if part != "" {
		return nil, badHandle()
	}
	d, n, pointer, problem := k.locate(req.Pointer)
	if problem != nil {
		return nil, problem
	}
	p.pointer = []byte(pointer)
	// A tape of its own goes as deep again as a page can show.
	fresh, err := scan(d.b[n.start:n.end])
	if err != nil {
		return nil, badPointer(pointer, "another value")
	}
	return p.read(fresh)
}

func badHandle() *dragoman.Problem {
	return badArgument("The handle names no part of that result.",
		dragoman.Field{Path: "/handle", Expected: "a handle exactly as a cut gives it"})
}

// locate finds a value by its pointer from the root of the message. A pointer
// from the data is understood too, and made one from the root.
func (k *kept) locate(pointer string) (d *doc, n node, full string, problem *dragoman.Problem) {
	first := k.roots[0]
	for _, r := range k.roots {
		rest, ok := strings.CutPrefix(pointer, r.pointer)
		if !ok || rest != "" && rest[0] != '/' {
			continue
		}
		if n, problem = r.doc.resolve(r.node, r.pointer, rest); problem == nil || r.pointer != first.pointer {
			return r.doc, n, pointer, problem
		}
	}
	if n, other := first.doc.resolve(first.node, first.pointer, pointer); other == nil || problem == nil {
		return first.doc, n, first.pointer + pointer, other
	}
	return nil, n, "", problem
}

// resolve follows a JSON pointer (RFC 6901) from n, which lies at another one.
// Of several members of one name the last counts.
func (d *doc) resolve(n node, at, pointer string) (node, *dragoman.Problem) {
	for tokens := pointer; tokens != ""; {
		if tokens[0] != '/' {
			return n, badPointer(at, "a pointer that begins with /")
		}
		token, rest, more := strings.Cut(tokens[1:], "/")
		if tokens = ""; more {
			tokens = "/" + rest
		}
		child, ok := d.part(n, token)
		if !ok {
			return n, badPointer(at, d.partsOf(n))
		}
		n = child
		at += "/" + token
		if strings.Count(at, "/") > maxDepth {
			return n, badPointer(at, "a shorter pointer, and unit json for what lies deeper")
		}
	}
	return n, nil
}

func (d *doc) part(n node, token string) (found node, ok bool) {
	switch n.kind {
	case '[':
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= n.count || strconv.Itoa(i) != token {
			return node{}, false
		}
		c := d.cursor(n)
		for range i {
			c.next()
		}
		ch, ok := c.next()
		return ch.node, ok
	case '{':
		for _, m := range d.children(n) {
			if string(appendToken(nil, m.name)) == token {
				found, ok = m.node, true
			}
		}
	}
	return found, ok
}

// partsOf says what a pointer could name in n.
func (d *doc) partsOf(n node) string {
	switch n.kind {
	case '[':
		return fmt.Sprintf("an index below %d there", n.count)
	case '{':
		var names []string
		for _, m := range d.children(n) {
			if len(names) == 10 {
				names = append(names, "…")
				break
			}
			names = append(names, visible(string(appendDecoded(nil, m.name)), 40))
		}
		return "one of the members there: " + strings.Join(names, ", ")
	}
	return "no further step: there is a plain value"
}

func badPointer(at, expected string) *dragoman.Problem {
	return badArgument(fmt.Sprintf("The pointer names nothing below %q.", visible(at, 200)),
		dragoman.Field{Path: "/pointer", Expected: expected})
}

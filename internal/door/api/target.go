package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// relayTarget finds the upstream that a request is for: by the model that it
// names, in its path, its query, its JSON body, or the beginning of its form, and
// returns the name with it; the first upstream when it names none. A body that it has
// read it returns. A request in which two readers may find two models, or one of them
// none, is refused: what is decided here has to hold for whoever reads it next.
func (a *API) relayTarget(w http.ResponseWriter, r *http.Request, who caller.Caller) (up *upstream.Upstream, name string, body []byte, err error) {
	asked, err := queryModel(r)
	if err != nil {
		return nil, "", nil, err
	}
	up, name, body, err = a.namedTarget(w, r, who)
	switch {
	case err != nil:
		return nil, "", nil, err
	case name == "" && asked != "": // Realtime
		up, err = a.upstream(asked)
		return up, asked, body, err
	case name == "":
		return a.Upstreams.First(), "", body, nil
	}
	return up, name, body, sameModel(asked, name)
}

// queryModel returns the model that the query of a request names; empty for none.
func queryModel(r *http.Request) (string, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query["model"]) > 1 {
		return "", model.Invalid("model", "The query can be read in more than one way.")
	}
	for key := range query {
		if key != "model" && likeModel(key) {
			return "", model.Invalid("model", fmt.Sprintf("Some APIs take the parameter %.40q for \"model\": leave it out.", key))
		}
	}
	return query.Get("model"), nil
}

// sameModel refuses a request whose query names another model than the rest of it:
// some APIs go by the one, and some by the other.
func sameModel(asked, name string) error {
	if asked == "" || asked == name {
		return nil
	}
	return model.Invalid("model", "The query names another model than the rest of the request.")
}

// namedTarget is relayTarget without the query. It returns no upstream where nothing
// names a model.
func (a *API) namedTarget(w http.ResponseWriter, r *http.Request, who caller.Caller) (up *upstream.Upstream, name string, body []byte, err error) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/v1/models/"); ok && name != "" {
		up, err = a.upstream(name)
		return up, name, nil, err
	}
	kind, params, err := contentType(r)
	if err != nil {
		return nil, "", nil, err
	}
	isJSON := false
	if kind != "multipart/form-data" {
		if isJSON, err = looksJSON(r, kind); err != nil {
			return nil, "", nil, err
		}
	}
	switch {
	case r.Body == nil || r.Body == http.NoBody:
	case isJSON:
		if body, err = a.readBody(w, r); err != nil {
			return nil, "", nil, err
		}
		return a.jsonTarget(r.Context(), who, body)
	case kind == "multipart/form-data":
		if name = peekModel(r, params["boundary"]); name != "" {
			up, err = a.upstream(name)
		}
	case kind == "application/x-www-form-urlencoded":
		err = unsupported("Bodies of the type application/x-www-form-urlencoded are not passed on: send JSON, or multipart/form-data.")
	}
	return up, name, nil, err
}

// jsonTarget finds the upstream of the model that a JSON body names, and returns
// the body with the name by which that upstream knows the model; nil when it
// names none. The body must be JSON in everybody's reading, and name no further model
// that the caller may not use: what is decided here is what the upstream gets.
func (a *API) jsonTarget(ctx context.Context, who caller.Caller, body []byte) (up *upstream.Upstream, name string, sent []byte, err error) {
	if len(body) == 0 {
		return nil, "", body, nil // a POST that needs none
	}
	o, err := rawjson.Read(body)
	switch {
	case errors.Is(err, rawjson.ErrNoObject):
		return nil, "", body, nil
	case err != nil:
		return nil, "", nil, model.InvalidBody(err)
	}
	if twin := o.Twin("model"); twin != "" {
		return nil, "", nil, model.Invalid(twin, fmt.Sprintf("%q is no member of a request, but some APIs take it for \"model\": leave it out.", twin))
	}
	if err := a.judgeFurther(ctx, who, body); err != nil {
		return nil, "", nil, err
	}
	name, ok := rawjson.String(o.Get("model"))
	if !ok {
		return nil, "", body, nil
	}
	if up, err = a.upstream(name); err != nil {
		return nil, "", nil, err
	}
	if theirs := up.ModelName(name); theirs != name {
		o.Set("model", rawjson.Quote(theirs))
		body = o.Bytes()
	}
	return up, name, body, nil
}

// contentType returns the type of a request's body; empty where it says none.
func contentType(r *http.Request) (kind string, params map[string]string, err error) {
	if err := compressed(r.Header); err != nil {
		return "", nil, err
	}
	said := r.Header.Values("Content-Type")
	if len(said) == 0 || len(said) == 1 && said[0] == "" {
		return "", nil, nil
	}
	kind, params, err = mime.ParseMediaType(said[0])
	if err != nil || len(said) > 1 || kind == "multipart/form-data" && (!boundaries.MatchString(params["boundary"]) || strings.Contains(said[0], "*")) {
		return "", nil, model.Invalid("", "The Content-Type cannot be read, or can be in more than one way.")
	}
	if kind == "multipart/form-data" {
		if err := otherCharset(r.Header, nil); err != nil {
			return "", nil, err
		}
	}
	return kind, params, nil
}

// compressed refuses a body of which its header says so: it is read here, and passed on, as
// it is.
func compressed(h http.Header) error {
	if slices.ContainsFunc(h.Values("Content-Encoding"), func(coding string) bool { return coding != "identity" }) {
		return unsupported("Bodies that are compressed are not passed on.")
	}
	return nil
}

// otherCharset refuses JSON, or a form, whose type names a charset in which it is something
// else than was judged, in UTF-8 (RFC 8259 section 8.1; RFC 7578 section 5.1.2). The type is
// passed on, and whoever goes by it reads that: in UTF-7, +ACI- is a quotation mark, and
// +AG0AbwBkAGUAbA- is "model". Of a form nothing is known yet but the type: text is nil.
func otherCharset(h http.Header, text []byte) error {
	for _, said := range h.Values("Content-Type") {
		said = strings.ToLower(said)
		named := strings.Count(said, "charset")
		if named == 0 {
			continue
		}
		_, params, err := mime.ParseMediaType(said)
		if charset := params["charset"]; err != nil || named > 1 || charset == "" || !reads(charset, text) {
			return unsupported("JSON and forms are UTF-8: name no other charset in the Content-Type.")
		}
	}
	return nil
}

// reads reports whether a text is the same in a charset, if one is named, as in UTF-8. Libraries
// name those that begin with ASCII by default, whatever they send.
func reads(charset string, text []byte) bool {
	switch strings.ToLower(charset) {
	case "", "utf-8", "utf8":
		return true
	case "us-ascii", "iso-8859-1":
		return !slices.ContainsFunc(text, func(b byte) bool { return b >= utf8.RuneSelf })
	}
	return false
}

func unsupported(message string) error {
	return &model.Error{Status: http.StatusUnsupportedMediaType, Type: model.TypeInvalidRequest, Code: model.CodeInvalidRequest, Message: message}
}

// boundaries are those that RFC 2046 has (section 5.1.1).
var boundaries = regexp.MustCompile(`^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$`)

// formParams returns the parameters of the type of a form: what stands between its parts, and
// its charset; nil for what is no form.
func formParams(r *http.Request) map[string]string {
	if kind, params, err := contentType(r); err == nil && kind == "multipart/form-data" && r.Body != nil && r.Body != http.NoBody {
		return params
	}
	return nil
}

// maxBlank is how much white space may stand before a body, in bytes.
const maxBlank = 4 << 10

// looksJSON reports whether a body is JSON, or would be for those who do not look at
// its type: many model APIs read JSON whatever the type says, as curl -d sends it.
func looksJSON(r *http.Request, kind string) (bool, error) {
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		return false, nil
	case kind == "application/json":
		return true, nil
	}
	rest, first := r.Body, []byte(nil)
	defer func() {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(first), rest), rest}
	}()
	for b := [1]byte{}; len(first) < maxBlank; {
		n, err := rest.Read(b[:])
		if n > 0 {
			first = append(first, b[0])
			blank := strings.IndexByte(" \t\r\n", b[0]) >= 0
			// A mark of the byte order, and the zeros of other encodings, are no text either.
			if !blank && (len(first) > 4 || strings.IndexByte("\x00\xef\xbb\xbf\xff\xfe", b[0]) < 0) {
				return b[0] == '{', nil
			}
		}
		if err != nil {
			return false, nil // whoever reads it finds out
		}
	}
	return false, model.Invalid("", "There is too much white space before the body.")
}

// peekModel looks for a field named model in the first 64 KiB of a form, which
// the request's body still begins with afterwards.
func peekModel(r *http.Request, boundary string) string {
	head, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err != nil && len(head) == 0 {
		return ""
	}
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), rest}
	form := multipart.NewReader(bytes.NewReader(head), boundary)
	for {
		part, err := form.NextPart()
		if err != nil {
			return ""
		}
		if part.FormName() == "model" {
			name, _ := io.ReadAll(io.LimitReader(part, 256))
			return string(name)
		}
	}
}

package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"unicode"

	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A formGuard passes a form (RFC 7578) on and reads its parts as they pass, so that
// the model in it is judged wherever it stands. It stays one byte behind: a form that
// is refused breaks off before its end, and whoever gets it has no whole request.
type formGuard struct {
	io.ReadCloser
	parts  *io.PipeWriter
	result chan error // of reading the parts, once

	last byte // what is held back
	held bool
	end  error // what is told once everything was passed on
}

// guardForm returns a body whose parts are judged: judge is called with the model that
// the form names, from another goroutine. params are those of the form's type, and one
// says that it has to name one, and no further ones.
func guardForm(body io.ReadCloser, params map[string]string, one bool, judge func(model string) error) *formGuard {
	from, to := io.Pipe()
	f := &formGuard{ReadCloser: body, parts: to, result: make(chan error, 1)}
	boundary := params["boundary"]
	go func() {
		end := formEnd{last: []byte("\n--" + boundary + "--"), seen: []byte("\n")}
		form := io.TeeReader(from, &end)
		err := readForm(multipart.NewReader(form, boundary), params["charset"], one, judge)
		if err == nil {
			_, err = io.Copy(io.Discard, form)
		}
		if err == nil && end.more {
			err = ambiguousForm("Something stands behind the end of the form.")
		}
		_ = from.CloseWithError(err)
		f.result <- err
	}()
	return f
}

// readForm reads the parts of a form, whose type names a charset or none. Where two readers
// might see two models, or none and one, it refuses.
func readForm(form *multipart.Reader, charset string, one bool, judge func(model string) error) error {
	named := false
	for {
		part, err := form.NextRawPart()
		switch {
		case errors.Is(err, io.EOF) && one && !named:
			return ambiguousForm("This key may use some models only: name one of them in the form.")
		case errors.Is(err, io.EOF):
			return nil
		}
		if err != nil {
			return ambiguousForm("The form cannot be read: " + err.Error() + ".")
		}
		model, own, err := isModel(part.Header)
		if err != nil {
			return err
		}
		if !model {
			if name := part.FormName(); one && furtherField(name) {
				return furtherNamed(name)
			}
			continue
		}
		if named {
			return ambiguousForm("The form names a model twice.")
		}
		named = true
		name, err := io.ReadAll(io.LimitReader(part, maxModelName+1))
		if err != nil || len(name) > maxModelName || !reads(charset, name) || !reads(own, name) {
			return ambiguousForm("The name of the model in the form cannot be read.")
		}
		if err := judge(string(name)); err != nil {
			return err
		}
	}
}

// isModel reports whether a part of a form is the model, and the charset that it names for
// that. A part that is for some readers and not for others, or says something else to some, is
// refused.
func isModel(h textproto.MIMEHeader) (is bool, charset string, err error) {
	dispositions := h["Content-Disposition"]
	if len(dispositions) != 1 {
		return false, "", ambiguousForm("Each part of a form has one Content-Disposition.")
	}
	said := dispositions[0]
	kind, params, err := mime.ParseMediaType(said)
	// Behind an escaped quotation mark, readers who know of no escapes find other names.
	escaped := strings.Contains(said, `\"`) && strings.Contains(strings.ToLower(said), "model")
	// Readers such as Commons FileUpload decode the encoded words of mail (RFC 2047).
	word := strings.Contains(params["name"], "=?")
	if err != nil || kind != "form-data" || encodedName(said) || escaped || word {
		return false, "", ambiguousForm("The Content-Disposition of a part cannot be read, or can be in more than one way.")
	}
	name := params["name"]
	if name != "model" {
		if likeModel(name) {
			return false, "", ambiguousForm(fmt.Sprintf("Some APIs take a field named %.40q for \"model\": leave it out.", name))
		}
		return false, "", nil
	}
	_, file := params["filename"]
	plain := !file
	for _, encoding := range h["Content-Transfer-Encoding"] {
		encoding = strings.ToLower(encoding)
		plain = plain && (encoding == "7bit" || encoding == "8bit" || encoding == "binary")
	}
	for _, said := range h["Content-Type"] {
		kind, params, err := mime.ParseMediaType(said)
		charset = params["charset"]
		plain = plain && len(h["Content-Type"]) == 1 && err == nil && kind == "text/plain" && reads(charset, nil)
	}
	if !plain {
		return false, "", ambiguousForm("The model in a form is plain text, and no file.")
	}
	return true, charset, nil
}

// encodedName reports a name in the extended notation of RFC 2231, which forms must not
// have (RFC 7578 section 4.2): some readers take it for the name, and some do not.
func encodedName(disposition string) bool {
	for param := range strings.SplitSeq(strings.ToLower(disposition), ";") {
		if strings.HasPrefix(strings.TrimSpace(param), "name*") {
			return true
		}
	}
	return false
}

// likeModel reports whether readers who know no capitals, leave out what is no letter,
// or take names apart, read a name as "model".
func likeModel(name string) bool {
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	name, _, _ = strings.Cut(name, "[")
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name)
	return strings.EqualFold(letters, "model")
}

// A formEnd looks whether there is more behind the end of a form than white space:
// some readers find parts there.
type formEnd struct {
	last []byte // the last boundary
	seen []byte // the beginning of it, perhaps
	over bool
	more bool
}

// Write implements [io.Writer].
func (e *formEnd) Write(p []byte) (int, error) {
	rest := p
	if !e.over {
		e.seen = append(e.seen, p...)
		at := bytes.Index(e.seen, e.last)
		if at < 0 {
			e.seen = append(e.seen[:0], e.seen[max(0, len(e.seen)-len(e.last)+1):]...)
			return len(p), nil
		}
		rest, e.over = e.seen[at+len(e.last):], true
	}
	e.more = e.more || len(bytes.Trim(rest, " \t\r\n")) > 0
	return len(p), nil
}

// maxModelName is the longest name of a model in a form, in bytes.
const maxModelName = 256

func ambiguousForm(message string) error {
	return &model.Error{Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: model.CodeInvalidRequest, Message: message}
}

func (f *formGuard) Read(p []byte) (n int, err error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case f.end == nil:
	case f.end == io.EOF && f.held:
		p[0], f.held = f.last, false
		return 1, io.EOF
	default:
		return 0, f.end
	}
	n, err = f.ReadCloser.Read(p)
	if n > 0 {
		if _, refused := f.parts.Write(p[:n]); refused != nil {
			f.end = refused
			return 0, refused
		}
		last := p[n-1]
		if f.held {
			copy(p[1:n], p[:n-1])
			p[0] = f.last
		} else {
			n--
		}
		f.last, f.held = last, true
	}
	switch {
	case err == nil:
		return n, nil
	case err != io.EOF:
		f.end = err
		return n, err
	}
	f.parts.Close()
	if f.end = <-f.result; f.end != nil {
		return n, f.end
	}
	f.end = io.EOF
	return n, nil
}

// Close ends the reading of parts, too.
func (f *formGuard) Close() error {
	_ = f.parts.CloseWithError(io.ErrUnexpectedEOF)
	return f.ReadCloser.Close()
}

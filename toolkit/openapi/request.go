package openapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/retry"
	"github.com/dragoman-mcp/dragoman/schema"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

// maxQuoted is how much of an error's text a model reads.
const maxQuoted = 500

// A caller sends the requests of one service.
type caller struct {
	base      *url.URL
	client    *http.Client
	authorize func(context.Context, *http.Request) error
	limit     int64
}

func (c *caller) call(ctx context.Context, p *plan, given json.RawMessage) (Answer, error) {
	n, err := schema.Parse(given)
	if err != nil {
		return Answer{}, err
	}
	req, err := c.request(ctx, p, n)
	if err != nil {
		return Answer{}, err
	}
	res, err := c.client.Do(req)
	switch {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err()
	case errors.Is(err, errRedirect):
		return Answer{}, fmt.Errorf("%s %s: %w", p.method, p.path, err)
	case err != nil:
		// The error names addresses, which are no business of a model's.
		return Answer{}, toolkit.Refuse("The service gave no answer.%s", p.perhaps())
	}
	defer res.Body.Close()
	body, err := toolkit.ReadAll(res.Body, c.limit)
	if err != nil {
		return Answer{}, err
	}
	if res.StatusCode >= 400 {
		return Answer{}, failure(p, res, body)
	}
	return Answer{Status: res.StatusCode, Data: data(res, body)}, nil
}

// request fills in path, query, headers and body.
func (c *caller) request(ctx context.Context, p *plan, n *schema.Node) (*http.Request, error) {
	path, header := p.path, http.Header{}
	var query []string // name=value, escaped
	for _, q := range p.parameters {
		v := n.Get(q.argument)
		if v == nil {
			continue
		}
		switch q.in {
		case "path":
			text := simple(v, q.explode, url.PathEscape)
			if text == "" || text == "." || text == ".." {
				return nil, toolkit.Invalid(q.argument, "%q cannot stand in a path.", text)
			}
			path = strings.ReplaceAll(path, "{"+q.name+"}", text)
		case "header":
			text := simple(v, q.explode, func(s string) string { return s })
			if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return nil, toolkit.Invalid(q.argument, "control characters cannot stand in a header.")
			}
			header.Set(q.name, text)
		case "query":
			query = append(query, q.query(v)...)
		}
	}
	u, err := url.Parse(strings.TrimSuffix(c.base.String(), "/") + path)
	if err != nil || u.Host != c.base.Host || u.Scheme != c.base.Scheme {
		return nil, fmt.Errorf("%s %s: not an address of the service", p.method, p.path)
	}
	u.RawQuery = strings.Join(query, "&")
	var body []byte
	if p.hasBody {
		body = p.content(n)
	}
	req, err := http.NewRequestWithContext(ctx, p.method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("Accept", "application/json, text/*;q=0.5, */*;q=0.1")
	if body != nil {
		req.Header.Set("Content-Type", p.media)
	}
	if c.authorize != nil {
		if err := c.authorize(ctx, req); err != nil {
			return nil, fmt.Errorf("authorize: %w", err)
		}
	}
	return req, nil
}

// content is the body; nil for none.
func (p *plan) content(n *schema.Node) []byte {
	if p.body != "" {
		if v := n.Get(p.body); v != nil {
			return v.Bytes()
		}
		return nil
	}
	body := schema.NewObject()
	for _, name := range p.fields {
		if v := n.Get(name); v != nil {
			body.Set(name, v)
		}
	}
	if len(body.Members()) == 0 && !p.must {
		return nil
	}
	return body.Bytes()
}

// text is how a value stands in an address: as it is, or as JSON where it has
// parts. An integer is written plainly, since a schema takes 3.0 and 1e2 for one, and a
// service does not.
func text(v *schema.Node) string {
	if v.Kind() == schema.Object || v.Kind() == schema.Array {
		return string(v.Bytes())
	}
	if plain, ok := v.Integer(); ok {
		return plain
	}
	return v.Text()
}

// simple is the style of paths and headers: a,b and k,v or k=v. What stands between the
// commas is escaped, so that a comma in it separates nothing.
func simple(v *schema.Node, explode bool, escape func(string) string) string {
	return strings.Join(flat(v, explode, escape), ",")
}

func flat(v *schema.Node, explode bool, escape func(string) string) []string {
	var list []string
	switch v.Kind() {
	case schema.Array:
		for _, item := range v.Items() {
			list = append(list, escape(text(item)))
		}
	case schema.Object:
		for _, m := range v.Members() {
			if explode {
				list = append(list, escape(m.Name)+"="+escape(text(m.Value)))
			} else {
				list = append(list, escape(m.Name), escape(text(m.Value)))
			}
		}
	default:
		list = append(list, escape(text(v)))
	}
	return list
}

// query writes a parameter in its style; see "Style Examples" in OpenAPI 3.
func (q parameter) query(v *schema.Node) (list []string) {
	add := func(name, escaped string) { list = append(list, url.QueryEscape(name)+"="+escaped) }
	separator := map[string]string{"spaceDelimited": "+", "pipeDelimited": "%7C"}[q.style]
	switch {
	case q.style == "deepObject" && v.Kind() == schema.Object:
		for _, m := range v.Members() {
			add(q.name+"["+m.Name+"]", url.QueryEscape(text(m.Value)))
		}
	case v.Kind() == schema.Object && q.explode:
		for _, m := range v.Members() {
			add(m.Name, url.QueryEscape(text(m.Value)))
		}
	case v.Kind() == schema.Array && q.explode:
		for _, item := range v.Items() {
			add(q.name, url.QueryEscape(text(item)))
		}
	default:
		add(q.name, strings.Join(flat(v, false, url.QueryEscape), cmp.Or(separator, ",")))
	}
	return list
}

// data is the answer as JSON: itself, or its text.
func data(res *http.Response, body []byte) json.RawMessage {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return json.RawMessage("null")
	}
	if rawjson.Check(body) == nil {
		return body
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); !utf8.Valid(body) || strings.HasPrefix(kind, "image/") {
		return rawjson.Quote(fmt.Sprintf("%d bytes of %s", len(body), kind))
	}
	return rawjson.Quote(string(body))
}

// failure tells a model what it can do about an answer that is an error.
func failure(p *plan, res *http.Response, body []byte) error {
	said := strings.ToValidUTF8(strings.TrimSpace(string(body)), "?")
	if runes := []rune(said); len(runes) > maxQuoted {
		said = string(runes[:maxQuoted]) + "…"
	}
	switch {
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode == http.StatusServiceUnavailable:
		return toolkit.RetryAfter(after(res), "The service is busy (%d).", res.StatusCode)
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		return toolkit.Refuse("The service does not let this server do that (%d). Whoever runs it can say why.", res.StatusCode)
	case res.StatusCode == http.StatusNotFound:
		return toolkit.NotFound("The service has no such thing (404): %s", said)
	case res.StatusCode < 500:
		return toolkit.Refuse("The service refused the request (%d): %s", res.StatusCode, said)
	}
	return toolkit.Refuse("The service failed (%d).%s", res.StatusCode, p.perhaps())
}

// perhaps warns of repeating what may have been done.
func (p *plan) perhaps() string {
	if p.method == http.MethodGet || p.method == http.MethodHead {
		return ""
	}
	return " It may have carried out the request all the same; look before you try again."
}

// after is what Retry-After says, from a second to an hour; ten seconds if nothing.
func after(res *http.Response) time.Duration {
	wait, err := retry.After(res.Header.Get("Retry-After"), time.Second)
	if err != nil {
		return 10 * time.Second
	}
	return min(max(wait, time.Second), time.Hour)
}

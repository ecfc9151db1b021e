package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// Skills (SEP-2640) are relayed. A skill is known by its server and its URI: where a
// server before it, by label, has the same URI, its own says whose it is, and so do
// those of its files.

func hasSkills(s dragoman.Server) bool { return extension(s, mcp.SkillsExtension) != nil }

// readsDirectories reports whether a server answers resources/directory/read.
func readsDirectories(s dragoman.Server) bool {
	o, err := rawjson.ParseObject(extension(s, mcp.SkillsExtension))
	return err == nil && string(o.Get("directoryRead")) == "true"
}

// skillsCapability is what clients are told about skills.
func (v *view) skillsCapability() json.RawMessage {
	if v.has(readsDirectories) {
		return json.RawMessage(`{"directoryRead":true}`)
	}
	return json.RawMessage(`{}`)
}

// aboutSkill answers the requests of the extension.
func (h *host) aboutSkill(ctx context.Context, s *session.Session, v *view, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	uri, _ := rawjson.String(params.Get("uri"))
	switch call.Method {
	case "skills/list":
		return h.list(s, v, call, params)
	case "skills/get":
		return h.getSkill(ctx, s, v, call, uri)
	}
	call.Entry = v.resource(uri)
	if call.Entry == nil || !v.has(func(s dragoman.Server) bool { return s.Label == call.Entry.Server && readsDirectories(s) }) {
		return dragoman.Result{}, h.notFound("directory", uri)
	}
	res, err := h.passed(s.Tools.Call(ctx, call))
	if call.Entry.URI != call.Entry.Original && res.Content != nil {
		res.Content = relocated(res.Content, call.Entry.Server)
	}
	return res, err
}

// getSkill asks for one skill, which need not be listed: its server, or, where the
// URI does not say whose it is, one server with skills after the other.
func (h *host) getSkill(ctx context.Context, s *session.Session, v *view, call dragoman.Call, uri string) (dragoman.Result, error) {
	var entries []*dragoman.Entry
	if label, original, ok := catalog.SplitURI(uri); ok {
		entries = append(entries, &dragoman.Entry{Kind: dragoman.Skill, URI: uri, Server: label, Original: original})
	} else if e := v.skill(uri); e != nil {
		entries = append(entries, e)
	} else {
		for _, server := range v.servers {
			if hasSkills(server) {
				entries = append(entries, &dragoman.Entry{Kind: dragoman.Skill, URI: uri, Server: server.Label, Original: uri})
			}
		}
	}
	for _, e := range entries {
		if !v.has(func(s dragoman.Server) bool { return s.Label == e.Server && hasSkills(s) }) {
			continue
		}
		call.Entry = e
		res, err := h.passed(s.Tools.Call(ctx, call))
		if theirs, ok := errors.AsType[*mcp.RPCError](err); ok && theirs.Code == invalidParams {
			continue
		}
		// The files of one that is not listed are found by whose they are alone.
		if listed := e.Definition != nil; res.Content != nil && (e.URI != e.Original || !listed && v.several()) {
			if o, err := rawjson.ParseObject(res.Content); err == nil && o.Get("skill") != nil {
				o = o.Clone()
				o.Set("skill", relocated(o.Get("skill"), e.Server))
				res.Content = o.Bytes()
			}
		}
		return res, err
	}
	return dragoman.Result{}, h.notFound("skill", uri)
}

// several reports whether more than one server has resources.
func (v *view) several() bool {
	n := 0
	for _, s := range v.servers {
		if capability(s, "resources") != nil {
			n++
		}
	}
	return n > 1
}

// skill returns the skill that is listed under a URI, or nil.
func (v *view) skill(uri string) *dragoman.Entry {
	for i := range v.entries {
		if e := &v.entries[i]; e.Kind == dragoman.Skill && e.URI == uri {
			return e
		}
	}
	return nil
}

// fileOfSkill returns what a URI names among the files of the skills that are
// listed, which need not be among the resources; nil for nothing.
func (v *view) fileOfSkill(uri string) *dragoman.Entry {
	for i := range v.entries {
		e := &v.entries[i]
		if e.Kind != dragoman.Skill {
			continue
		}
		root := strings.TrimSuffix(e.URI, "/SKILL.md")
		if uri == root || strings.HasPrefix(uri, root+"/") {
			return &dragoman.Entry{Kind: dragoman.Resource, URI: uri, Server: e.Server, Original: catalog.OriginalURI(e.Server, uri)}
		}
	}
	return nil
}

// relocated returns a skill, or a directory, of a server with URIs that say whose
// they are: its own, and those of what is in it.
func relocated(entry json.RawMessage, server string) json.RawMessage {
	o, err := rawjson.ParseObject(entry)
	if err != nil {
		return entry
	}
	o = o.Clone()
	if uri, ok := rawjson.String(o.Get("uri")); ok {
		o.Set("uri", rawjson.Quote(catalog.PublicURI(server, uri)))
	}
	if files, err := rawjson.Elements(o.Get("resources")); err == nil {
		for i := range files {
			files[i] = relocated(files[i], server)
		}
		o.Set("resources", rawjson.AppendArray(nil, files))
	}
	return o.Bytes()
}

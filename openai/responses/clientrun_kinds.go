package responses

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

func shellMembers(o *rawjson.Object) ([]rawjson.Member, error) {
	commands := o.Get("commands")
	if one, ok := rawjson.String(commands); ok {
		commands = array(rawjson.Quote(one))
	}
	if !texts(commands) {
		return nil, errors.New("a shell needs commands")
	}
	return []rawjson.Member{
		raw("action", object(raw("commands", commands), raw("timeout_ms", whole(o, "timeout_ms")), raw("max_output_length", whole(o, "max_output_length")))),
		raw("environment", object(text("type", "local"))),
	}, nil
}

func shellTold(item *rawjson.Object) json.RawMessage {
	return rawjson.Quote(string(object(raw("output", item.Get("output")))))
}

func localShellMembers(o *rawjson.Object) ([]rawjson.Member, error) {
	if !texts(o.Get("command")) {
		return nil, errors.New("a shell needs a command")
	}
	action := []rawjson.Member{text("type", "exec"), raw("command", o.Get("command")), raw("env", object()), raw("timeout_ms", whole(o, "timeout_ms"))}
	if folder := stringOf(o, "working_directory"); folder != "" {
		action = append(action, text("working_directory", folder))
	}
	return []rawjson.Member{raw("action", object(action...))}, nil
}

func plainTold(item *rawjson.Object) json.RawMessage { return item.Get("output") }

func patchMembers(o *rawjson.Object) ([]rawjson.Member, error) {
	kind, path := stringOf(o, "type"), stringOf(o, "path")
	operation := []rawjson.Member{text("type", kind), text("path", path)}
	switch kind {
	case "create_file", "update_file":
		if rawjson.Kind(o.Get("diff")) != '"' {
			return nil, errors.New("a patch needs a diff")
		}
		operation = append(operation, text("diff", stringOf(o, "diff")))
	case "delete_file":
	default:
		return nil, fmt.Errorf("there is no %q", kind)
	}
	if path == "" {
		return nil, errors.New("a patch needs a path")
	}
	return []rawjson.Member{raw("operation", object(operation...))}, nil
}

func patchTold(item *rawjson.Object) json.RawMessage {
	return rawjson.Quote(string(object(raw("status", item.Get("status")), raw("output", item.Get("output")))))
}

// inMember returns what has the arguments of a call in a member of its item, without what is null.
func inMember(name string) func(*rawjson.Object) *rawjson.Object {
	return func(item *rawjson.Object) *rawjson.Object {
		kept := &rawjson.Object{}
		o, err := rawjson.ParseObject(item.Get(name))
		if err != nil {
			return kept
		}
		for name, value := range o.All() {
			if !rawjson.IsNull(value) {
				kept.Set(name, value)
			}
		}
		return kept
	}
}

// whole returns a member that is a whole number; null for another.
func whole(o *rawjson.Object, name string) json.RawMessage {
	if _, ok := rawjson.Int(o.Get(name)); !ok {
		return null
	}
	return o.Get(name)
}

// texts reports whether a value is an array of texts, and has some.
func texts(value json.RawMessage) bool {
	all, err := rawjson.Elements(value)
	for _, each := range all {
		if rawjson.Kind(each) != '"' {
			return false
		}
	}
	return err == nil && len(all) > 0
}

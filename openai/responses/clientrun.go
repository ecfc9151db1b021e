package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A clientRun is a kind of tool that clients run themselves and whose form the API knows, so
// that an entry of tools has no name and no schema. A model that does not know it is told of a
// function of the same name; the arguments of a call of that are a member of the item.
type clientRun struct {
	description, parameters string
	prefix                  string // of the ids of its items
	member                  string // of an item, which has the arguments
}

// clientRuns are those kinds by their names.
var clientRuns = map[string]*clientRun{
	"shell": {
		"Runs commands in a shell, and returns what each of them printed and how it ended.",
		`{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"},"description":"The commands. Each is run for itself."},` +
			`"timeout_ms":{"type":"integer","description":"How long one may take, in milliseconds."},` +
			`"max_output_length":{"type":"integer","description":"How much of what one prints is returned, in characters."}},"required":["commands"]}`,
		"sh_", "action",
	},
	"local_shell": {
		"Runs a program, and returns what it printed.",
		`{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments, such as bash, -lc and a line for that shell."},` +
			`"working_directory":{"type":"string","description":"The folder to run it in."},` +
			`"timeout_ms":{"type":"integer","description":"How long it may take, in milliseconds."}},"required":["command"]}`,
		"lsh_", "action",
	},
	"apply_patch": {
		"Creates, changes or deletes a file.",
		`{"type":"object","properties":{"type":{"type":"string","enum":["create_file","update_file","delete_file"],"description":"What to do."},` +
			`"path":{"type":"string","description":"The path of the file."},` +
			`"diff":{"type":"string","description":"For create_file: the lines of the file, each behind a +. For update_file: the changes. Each begins with a line @@, behind which a line of the file may stand that is before it, such as the head of a function; ` +
			`then follow some lines as they are, each behind a space, those that go, each behind a -, and those that come, each behind a +. There are no numbers of lines."}},"required":["type","path"]}`,
		"apc_", "operation",
	},
	"computer": {
		"Uses the mouse and the keyboard of a computer, and returns a picture of its screen.",
		`{"type":"object","properties":{"actions":{"type":"array","description":"What to do, one thing after the other.","items":{"type":"object","properties":{` +
			`"type":{"type":"string","enum":["click","double_click","drag","keypress","move","screenshot","scroll","type","wait"]},` +
			`"x":{"type":"integer","description":"For click, double_click, move and scroll: pixels from the left."},` +
			`"y":{"type":"integer","description":"For the same: pixels from the top."},` +
			`"button":{"type":"string","enum":["left","right","wheel","back","forward"],"description":"For click; left where it is left out."},` +
			`"path":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}},"required":["x","y"]},"description":"For drag: the points on the way."},` +
			`"scroll_x":{"type":"integer","description":"For scroll: how far to the right, in pixels."},` +
			`"scroll_y":{"type":"integer","description":"For scroll: how far down, in pixels."},` +
			`"keys":{"type":"array","items":{"type":"string"},"description":"For keypress: the keys. Else keys that are held meanwhile."},` +
			`"text":{"type":"string","description":"For type: the text."}},"required":["type"]}}},"required":["actions"]}`,
		"cu_", "actions",
	},
}

// offer completes an entry of tools of the kind.
func (run *clientRun) offer(kind string, o *rawjson.Object) error {
	description := run.description
	if environment, err := rawjson.ParseObject(o.Get("environment")); err == nil {
		if stringOf(environment, "type") != "local" {
			return model.Invalid(".environment", "A shell that the client does not run itself needs an upstream that speaks the Responses API itself.")
		}
		skills, err := skillsOf(environment.Get("skills"))
		if err != nil {
			return err
		}
		description += skills
	}
	o.Set("name", rawjson.Quote(kind))
	o.Set("description", rawjson.Quote(description))
	o.Set("parameters", json.RawMessage(run.parameters))
	return nil
}

// skillsOf is what a model is told of the skills that lie where a shell runs.
func skillsOf(raw json.RawMessage) (string, error) {
	if rawjson.IsNull(raw) {
		return "", nil
	}
	wrong := model.Invalid(".environment.skills", "Skills must be an array of objects, each with a name, a description and a path.")
	all, err := rawjson.Elements(raw)
	if err != nil {
		return "", wrong
	}
	var told strings.Builder
	for _, each := range all {
		skill, err := rawjson.ParseObject(each)
		if err != nil || stringOf(skill, "name") == "" || stringOf(skill, "path") == "" {
			return "", wrong
		}
		fmt.Fprintf(&told, "\n- %s, in %s: %s", stringOf(skill, "name"), stringOf(skill, "path"), stringOf(skill, "description"))
	}
	if told.Len() == 0 {
		return "", nil
	}
	return "\n\nThere are skills, which are folders with instructions. Where a task is one that a skill is for, the file SKILL.md of its folder is to be read first:" + told.String(), nil
}

// runMembers returns those members of the item of a call of such a kind that its arguments make.
// Arguments that are none are no call: nobody knows what they were to be.
func runMembers(kind, arguments string) (members []rawjson.Member, _ error) {
	wrong := func(err error) ([]rawjson.Member, error) {
		return nil, &model.Error{
			Status: http.StatusBadGateway, Type: model.TypeServer, Code: model.CodeUpstreamInvalid, Err: err,
			Message: fmt.Sprintf("The model called the tool %q with arguments that do not fit it.", kind),
		}
	}
	o, err := rawjson.ParseObject([]byte(arguments))
	if err != nil || rawjson.Check([]byte(arguments)) != nil {
		return wrong(err)
	}
	run := clientRuns[kind]
	switch kind {
	case "shell":
		commands := o.Get("commands")
		if one, ok := rawjson.String(commands); ok {
			commands = array(rawjson.Quote(one))
		}
		if all, err := rawjson.Elements(commands); err != nil || !texts(all) {
			return wrong(err)
		}
		members = append(members, raw(run.member, object(raw("commands", commands), raw("timeout_ms", whole(o, "timeout_ms")), raw("max_output_length", whole(o, "max_output_length")))),
			raw("environment", object(text("type", "local"))))
	case "local_shell":
		command, err := rawjson.Elements(o.Get("command"))
		if err != nil || !texts(command) {
			return wrong(err)
		}
		action := []rawjson.Member{text("type", "exec"), raw("command", o.Get("command")), raw("env", object()), raw("timeout_ms", whole(o, "timeout_ms"))}
		if folder := stringOf(o, "working_directory"); folder != "" {
			action = append(action, text("working_directory", folder))
		}
		members = append(members, raw(run.member, object(action...)))
	case "apply_patch":
		operation := object(text("type", stringOf(o, "type")), text("path", stringOf(o, "path")), text("diff", stringOf(o, "diff")))
		switch stringOf(o, "type") {
		case "create_file", "update_file":
			if rawjson.Kind(o.Get("diff")) != '"' {
				return wrong(nil)
			}
		case "delete_file":
			operation = object(text("type", "delete_file"), text("path", stringOf(o, "path")))
		default:
			return wrong(nil)
		}
		if stringOf(o, "path") == "" {
			return wrong(nil)
		}
		members = append(members, raw(run.member, operation))
	case "computer":
		actions, err := rawjson.Elements(o.Get("actions"))
		if err != nil || len(actions) == 0 {
			return wrong(err)
		}
		for i := range actions {
			if actions[i], err = computerAction(actions[i]); err != nil {
				return wrong(err)
			}
		}
		members = append(members, raw(run.member, array(actions...)), raw("pending_safety_checks", empty))
	}
	return members, nil
}

// runCall shows a call of a tool of such a kind, whose item has some members of its arguments.
func (c *Conversation) runCall(callID, kind string, members []rawjson.Member) {
	id := c.answer.name(clientRuns[kind].prefix)
	item := func(status string) json.RawMessage {
		all := append([]rawjson.Member{text("id", id), text("type", kind+"_call"), text("call_id", callID)}, members...)
		return object(append(all, text("status", status))...)
	}
	c.answer.done(c.answer.add(item("in_progress")), item("completed"))
}

// computerAction returns an action at a computer with what its kind has to have.
func computerAction(action json.RawMessage) (json.RawMessage, error) {
	o, err := rawjson.ParseObject(action)
	if err != nil {
		return nil, err
	}
	kind := stringOf(o, "type")
	members := []rawjson.Member{text("type", kind)}
	numbers := func(names ...string) {
		for _, name := range names {
			n := o.Get(name)
			if rawjson.IsNull(n) && strings.HasPrefix(name, "scroll_") {
				n = json.RawMessage("0") // one way is enough
			}
			if _, ok := rawjson.Int(n); !ok {
				err = fmt.Errorf("%s needs %s", kind, name)
			}
			members = append(members, raw(name, n))
		}
	}
	keys := raw("keys", null)
	if all, failed := rawjson.Elements(o.Get("keys")); failed == nil && texts(all) {
		keys = raw("keys", o.Get("keys"))
	}
	switch kind {
	case "click":
		button := stringOf(o, "button")
		if rawjson.IsNull(o.Get("button")) {
			button = "left"
		}
		if !slices.Contains([]string{"left", "right", "wheel", "back", "forward"}, button) {
			return nil, errors.New("click needs a button")
		}
		members = append(members, text("button", button))
		numbers("x", "y")
		members = append(members, keys)
	case "double_click", "move":
		numbers("x", "y")
		members = append(members, keys)
	case "scroll":
		numbers("x", "y", "scroll_x", "scroll_y")
		members = append(members, keys)
	case "drag":
		points, failed := rawjson.Elements(o.Get("path"))
		if failed != nil || len(points) < 2 {
			return nil, errors.New("drag needs a path")
		}
		for _, point := range points {
			p, failed := rawjson.ParseObject(point)
			if failed != nil {
				return nil, failed
			}
			_, across := rawjson.Int(p.Get("x"))
			if _, down := rawjson.Int(p.Get("y")); !across || !down {
				return nil, errors.New("a point needs x and y")
			}
		}
		members = append(members, raw("path", o.Get("path")), keys)
	case "keypress":
		if rawjson.IsNull(keys.Value) {
			return nil, errors.New("keypress needs keys")
		}
		members = append(members, keys)
	case "type":
		if rawjson.Kind(o.Get("text")) != '"' {
			return nil, errors.New("type needs a text")
		}
		members = append(members, raw("text", o.Get("text")))
	case "screenshot", "wait":
	default:
		return nil, fmt.Errorf("there is no %q", kind)
	}
	return object(members...), err
}

// whole returns a member that is a whole number; null for another.
func whole(o *rawjson.Object, name string) json.RawMessage {
	if _, ok := rawjson.Int(o.Get(name)); !ok {
		return null
	}
	return o.Get(name)
}

// texts reports whether all of some values are texts, and whether there are some.
func texts(all []json.RawMessage) bool {
	for _, each := range all {
		if rawjson.Kind(each) != '"' {
			return false
		}
	}
	return len(all) > 0
}

// screen returns what came of a call at a computer as parts of content: a picture.
func screen(output json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(output)
	if err != nil {
		return output
	}
	o.Set("type", rawjson.Quote("input_image"))
	return array(o.Bytes())
}

// argumentsOf returns the arguments of a call of such a kind, which its item has in a member:
// as a literal, without what is null.
func (run *clientRun) argumentsOf(item *rawjson.Object) json.RawMessage {
	if run.member == "actions" {
		actions := item.Get("actions")
		if one := item.Get("action"); rawjson.IsNull(actions) && !rawjson.IsNull(one) {
			actions = array(one) // as models before had it
		}
		return rawjson.Quote(string(object(raw("actions", actions))))
	}
	o, err := rawjson.ParseObject(item.Get(run.member))
	if err != nil {
		return rawjson.Quote("{}")
	}
	kept := &rawjson.Object{}
	for name, value := range o.All() {
		if !rawjson.IsNull(value) {
			kept.Set(name, value)
		}
	}
	return rawjson.Quote(string(kept.Bytes()))
}

package responses

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A clientRun is a kind of tool that clients run themselves and whose form the API knows, so
// that an entry of tools has no name and no schema. A model that does not know it is told of a
// function of the same name. A call is an item of the type KIND_call, and what came of it one of
// the type KIND_call_output.
type clientRun struct {
	description, parameters string
	prefix                  string // of the ids of its items
	// members returns those members of an item that the arguments of a call make.
	members func(arguments *rawjson.Object) ([]rawjson.Member, error)
	// arguments returns those that an item has, which were members.
	arguments func(item *rawjson.Object) *rawjson.Object
	// told returns what a model reads of what came of a call: a text, or an array of parts.
	told func(item *rawjson.Object) json.RawMessage
}

// clientRuns are those kinds by their names.
var clientRuns = map[string]*clientRun{
	"shell": {
		"Runs commands in a shell, and returns what each of them printed and how it ended.",
		`{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"},"description":"The commands. Each is run for itself."},` +
			`"timeout_ms":{"type":"integer","description":"How long one may take, in milliseconds."},` +
			`"max_output_length":{"type":"integer","description":"How much of what one prints is returned, in characters."}},"required":["commands"]}`,
		"sh_", shellMembers, inMember("action"), shellTold,
	},
	"local_shell": {
		"Runs a program, and returns what it printed.",
		`{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments, such as bash, -lc and a line for that shell."},` +
			`"working_directory":{"type":"string","description":"The folder to run it in."},` +
			`"timeout_ms":{"type":"integer","description":"How long it may take, in milliseconds."}},"required":["command"]}`,
		"lsh_", localShellMembers, inMember("action"), plainTold,
	},
	"apply_patch": {
		"Creates, changes or deletes a file.",
		`{"type":"object","properties":{"type":{"type":"string","enum":["create_file","update_file","delete_file"],"description":"What to do."},` +
			`"path":{"type":"string","description":"The path of the file."},` +
			`"diff":{"type":"string","description":"For create_file: the lines of the file, each behind a +. For update_file: the changes. Each begins with a line @@, behind which a line of the file may stand that is before it, such as the head of a function; ` +
			`then follow some lines as they are, each behind a space, those that go, each behind a -, and those that come, each behind a +. There are no numbers of lines."}},"required":["type","path"]}`,
		"apc_", patchMembers, inMember("operation"), patchTold,
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
		"cu_", computerMembers, computerArguments, computerTold,
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

// runOf returns the name and the kind of the tool of which items of a type are calls; nil for
// another type.
func runOf(kind string) (name string, run *clientRun) {
	name, ok := strings.CutSuffix(kind, "_call")
	if !ok {
		return "", nil
	}
	return name, clientRuns[name]
}

// isOutput reports whether items of a type are what came of a call of a tool of the client's.
func isOutput(kind string) bool {
	switch kind {
	case "function_call_output", "custom_tool_call_output", "tool_search_output":
		return true
	}
	return outputOf(kind) != nil
}

// outputOf returns the kind of the tool of which items of a type are results; nil for another type.
func outputOf(kind string) *clientRun {
	call, ok := strings.CutSuffix(kind, "_output")
	if !ok {
		return nil
	}
	_, run := runOf(call)
	return run
}

// runMembers returns those members of the item of a call of such a kind that its arguments make.
// Arguments that are none are no call: nobody knows what they were to be.
func runMembers(kind, arguments string) (members []rawjson.Member, err error) {
	o, err := rawjson.ParseObject([]byte(arguments))
	if err == nil {
		err = rawjson.Check([]byte(arguments))
	}
	if err == nil {
		members, err = clientRuns[kind].members(o)
	}
	if err != nil {
		return nil, &model.Error{
			Status: http.StatusBadGateway, Type: model.TypeServer, Code: model.CodeUpstreamInvalid, Err: err,
			Message: fmt.Sprintf("The model called the tool %q with arguments that do not fit it.", kind),
		}
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

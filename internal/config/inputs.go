package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
)

// An Input is a value that is in no file, such as a token: a person is asked
// for it, or it is in the environment. Editors declare them beside their MCP
// servers, which refer to them as ${input:id}.
type Input struct {
	ID          string   `yaml:"id" need:"true" doc:"What references call it: a value with \"${input:id}\" in it gets the answer. Letters, digits, and . _ - are allowed."`
	Type        string   `yaml:"type" enum:"promptString,pickString,command" doc:"promptString takes any text, pickString one of options. command only an editor can run, so that here the environment has to answer."`
	Description string   `yaml:"description" doc:"What a person is asked."`
	Default     string   `yaml:"default" doc:"The answer where nobody gives another one."`
	Password    bool     `yaml:"password" doc:"Hides the answer while it is typed."`
	Options     []string `yaml:"options" doc:"The answers to choose from, for pickString."`
}

// The types of an [Input].
const (
	PromptString = "promptString"
	PickString   = "pickString"
	CommandInput = "command"
)

// SetDefaults makes it an input that takes any text.
func (in *Input) SetDefaults() { in.Type = PromptString }

// Validate reports an input that nothing could refer to, or nobody answer.
func (in *Input) Validate() error {
	switch {
	case !inputID(in.ID):
		return invalid.Key("id", "an input needs an id of letters, digits, and . _ -")
	case in.Type == PickString && len(in.Options) == 0:
		return invalid.Key("options", "there is nothing to choose from")
	case in.Type == PickString && in.Default != "" && !slices.Contains(in.Options, in.Default):
		return invalid.Key("default", strconv.Quote(in.Default)+" is none of the options")
	}
	return nil
}

func inputID(id string) bool {
	return id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// Variable is the environment variable that answers the input:
// DRAGOMAN_INPUT_API_KEY for the id api-key.
func (in Input) Variable() string {
	return "DRAGOMAN_INPUT_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, in.ID)
}

// checkInputs reports two inputs that references, or the environment, could not
// tell apart.
func checkInputs(list []Input) error {
	for i, one := range list {
		for _, other := range list[:i] {
			switch {
			case other.ID == one.ID:
				return invalid.Key(inputsKey, fmt.Sprintf("two inputs have the id %q", one.ID))
			case other.Variable() == one.Variable():
				return invalid.Key(inputsKey, fmt.Sprintf("the inputs %q and %q would both be answered by %s", other.ID, one.ID, one.Variable()))
			}
		}
	}
	return nil
}

// inputs answers references to inputs. Each is asked for once, and only when a
// server that is to run refers to it.
type inputs struct {
	reader   Reader
	declared func() []Input
	answers  map[string]string
}

// value returns the answer to the input with an id. The environment goes before
// the person, so that a script is never stopped by a question.
func (in *inputs) value(id string) (string, *referenceError) {
	if answer, ok := in.answers[id]; ok {
		return answer, nil
	}
	input := Input{ID: id, Type: PromptString}
	declared := in.declared()
	if i := slices.IndexFunc(declared, func(one Input) bool { return one.ID == id }); i >= 0 {
		input = declared[i]
	}
	answer, failed := in.find(input)
	if failed != nil {
		return "", failed
	}
	if in.answers == nil {
		in.answers = make(map[string]string)
	}
	in.answers[id] = answer
	return answer, nil
}

func (in *inputs) find(input Input) (string, *referenceError) {
	if value, ok := in.reader.lookup(input.Variable()); ok {
		if input.Type == PickString && !slices.Contains(input.Options, value) {
			return "", &referenceError{input.Variable() + " is none of the options of ${input:" + input.ID + "}", "They are " + strings.Join(input.Options, ", ") + "."}
		}
		return value, nil
	}
	if in.reader.Ask != nil && input.Type != CommandInput {
		value, err := in.reader.Ask(input)
		if err != nil {
			return "", &referenceError{fmt.Sprintf("${input:%s} was not answered: %v", input.ID, err), in.hint(input)}
		}
		return value, nil
	}
	if input.Default != "" {
		return input.Default, nil
	}
	if input.Type == CommandInput {
		return "", &referenceError{fmt.Sprintf("${input:%s} is answered by a command of an editor", input.ID), in.hint(input)}
	}
	return "", &referenceError{fmt.Sprintf("${input:%s} asks a person for a value, and nobody is at a terminal", input.ID), in.hint(input)}
}

func (in *inputs) hint(input Input) string { return "Set " + input.Variable() + " in the environment." }

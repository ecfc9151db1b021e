package toolkit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/lint"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A Prompt says what one prompt is. Name and Description must be given.
type Prompt struct {
	// Name in lower case, words joined by _, such as "plan_day".
	Name string
	// Title is what people see in a menu.
	Title string
	// Description says what comes of it.
	Description string
	// Requires are the rights that a caller must have. Who lacks one is not shown
	// the prompt, and denied if they ask for it.
	Requires []string
	// Complete proposes values for arguments, by their names. An argument with an
	// enum tag completes itself.
	Complete map[string]Completer
}

// Messages are what a prompt becomes. Make them with [User] and [Assistant].
type Messages []*sdk.PromptMessage

// User returns a message of the user's: a text, or one block such as [Embed].
func User(content any) *sdk.PromptMessage { return message("user", content) }

// Assistant returns a message of the model's.
func Assistant(content any) *sdk.PromptMessage { return message("assistant", content) }

func message(role sdk.Role, content any) *sdk.PromptMessage {
	block, ok := content.(sdk.Content)
	if !ok {
		block = Words(fmt.Sprint(content))
	}
	return &sdk.PromptMessage{Role: role, Content: block}
}

// AddPrompt adds a prompt whose arguments are the fields of Args: strings,
// numbers or booleans, described and limited by the same tags as a tool's. MCP
// sends them as texts; the function gets them read and checked. What does not
// fit is told to the caller.
func AddPrompt[Args any](s *Server, p Prompt, f func(context.Context, Args) (Messages, error)) {
	var problems []error
	args, err := shapeOf(reflect.TypeFor[Args](), true)
	switch {
	case err != nil:
		problems = append(problems, each("arguments", err)...)
	case args.kind != kindObject:
		problems = append(problems, fmt.Errorf("arguments must be a struct, not %s", reflect.TypeFor[Args]()))
	default:
		problems = append(problems, scalars(args), s.completers("prompt "+p.Name, p.Complete, args),
			args.checkSamples(args.schema(true)))
	}
	if f == nil {
		problems = append(problems, errors.New("no function"))
	}
	if !lint.SnakeCase(p.Name) || len(p.Name) > lint.MaxName {
		problems = append(problems, errors.New("names are lower-case words joined by _, such as \"plan_day\""))
	}
	if strings.TrimSpace(p.Description) == "" {
		problems = append(problems, errors.New("no description"))
	}
	problems = append(problems, checkRequires(p.Requires))
	if err := errors.Join(problems...); err != nil {
		s.register(registration{kind: "prompt", name: p.Name}, err)
		return
	}
	accepts := schema.NewValidator(args.schema(true))
	definition := &sdk.Prompt{Name: p.Name, Title: p.Title, Description: oneLine(p.Description)}
	for _, field := range args.fields {
		definition.Arguments = append(definition.Arguments, &sdk.PromptArgument{
			Name: field.name, Title: field.at.rules.title, Description: field.at.rules.desc, Required: field.required,
		})
	}
	s.register(registration{kind: "prompt", name: p.Name, requires: p.Requires, put: func(server *sdk.Server) {
		server.AddPrompt(definition, func(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			given := promptBytes(req.Params.Arguments, args)
			j := job{
				request: newRequest(ctx, "prompt", p.Name, req.ClientInfo(), req.Session, req.Extra), session: req.Session,
				token: req.Params.GetProgressToken(), name: p.Name, arguments: given, requires: p.Requires, timeout: s.opts.Timeout,
			}
			j.request.Arguments = given
			messages, err := do(ctx, s, j, func(ctx context.Context) (Messages, error) {
				var in Args
				if err := args.fromText(req.Params.Arguments, accepts, &in); err != nil {
					return nil, &Refusal{Code: codeInvalid, Message: fmt.Sprintf("prompt %s: %v", p.Name, err)}
				}
				messages, err := f(ctx, in)
				if err != nil {
					return nil, err
				}
				return messages, messages.writable()
			})
			if err != nil {
				return nil, protocolError(err, "")
			}
			if messages == nil {
				messages = Messages{} // MCP wants a list
			}
			return &sdk.GetPromptResult{Description: definition.Description, Messages: messages}, nil
		})
	}}, nil)
}

// writable says what keeps messages from being written, see [writable].
func (m Messages) writable() error {
	var blocks []sdk.Content
	for _, one := range m {
		if one == nil {
			return errors.New("a message is nil")
		}
		blocks = append(blocks, one.Content)
	}
	return writable(m, blocks...)
}

// promptBytes are the arguments in a fixed order, for their digest.
func promptBytes(given map[string]string, args *shape) []byte {
	n := schema.NewObject()
	for _, f := range args.fields {
		if text, ok := given[f.name]; ok {
			n.Set(f.name, schema.NewString(text))
		}
	}
	return n.Bytes()
}

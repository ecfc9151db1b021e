package observe

// Every name by which something is told to the outside is in this file, and nowhere else.
//
// Names without our prefix are those of OpenTelemetry's semantic conventions for
// generative AI and MCP, in the repository open-telemetry/semantic-conventions-genai, as of
// 2026-11-21: docs/gen-ai/mcp.md and model/{gen-ai,mcp}/*.yaml, all of them in development
// and in no release; of HTTP (1.43.0, stable); and of Go's runtime (1.43.0).

// Source is the date of the conventions that the names are from.
const Source = "2026-11-21"

// Attributes of the conventions.
const (
	OperationName     = "gen_ai.operation.name"
	ProviderName      = "gen_ai.provider.name"
	RequestModel      = "gen_ai.request.model"
	RequestStream     = "gen_ai.request.stream"
	RequestSeed       = "gen_ai.request.seed"
	RequestChoices    = "gen_ai.request.choice.count" // where it is not 1
	RequestMaxTokens  = "gen_ai.request.max_tokens"
	RequestTemp       = "gen_ai.request.temperature"
	RequestTopP       = "gen_ai.request.top_p"
	OutputType        = "gen_ai.output.type"
	ResponseID        = "gen_ai.response.id"
	ResponseModel     = "gen_ai.response.model"
	FinishReasons     = "gen_ai.response.finish_reasons"
	TimeToFirstChunk  = "gen_ai.response.time_to_first_chunk"
	InputTokens       = "gen_ai.usage.input_tokens"
	OutputTokens      = "gen_ai.usage.output_tokens"
	CacheReadTokens   = "gen_ai.usage.cache_read.input_tokens"
	CacheWriteTokens  = "gen_ai.usage.cache_creation.input_tokens"
	ReasoningTokens   = "gen_ai.usage.reasoning.output_tokens"
	TokenType         = "gen_ai.token.type"
	ConversationID    = "gen_ai.conversation.id"
	AgentName         = "gen_ai.agent.name"
	ToolName          = "gen_ai.tool.name"
	ToolCallID        = "gen_ai.tool.call.id"
	ToolType          = "gen_ai.tool.type"
	ToolArguments     = "gen_ai.tool.call.arguments"
	ToolResult        = "gen_ai.tool.call.result"
	PromptName        = "gen_ai.prompt.name"
	MethodName        = "mcp.method.name"
	ProtocolVersion   = "mcp.protocol.version"
	RPCStatus         = "rpc.response.status_code"
	ErrorType         = "error.type"
	Transport         = "network.transport"
	ServerAddress     = "server.address"
	ServerPort        = "server.port" // where it is not that of the scheme
	HTTPMethod        = "http.request.method"
	HTTPRoute         = "http.route"
	HTTPStatus        = "http.response.status_code"
	ServiceName       = "service.name"
	ServiceVersion    = "service.version"
	ServiceInstanceID = "service.instance.id"
	MemoryType        = "go.memory.type"
)

// Attributes of ours.
const (
	Server        = "dragoman.server"         // the label of an MCP server
	RequestID     = "dragoman.request.id"     // as in the answer's header, the log and the audit log
	Door          = "dragoman.door"           // by which a call came in
	Rule          = "dragoman.policy.rule"    // that decided
	Verdict       = "dragoman.policy.verdict" // allow, ask or deny
	Ran           = "dragoman.call.ran"       // yes, not or maybe
	Limit         = "dragoman.limit"          // the name of a limit or a budget of the configuration
	Budget        = "dragoman.budget"         // the name of a budget of the configuration
	BudgetState   = "dragoman.budget.state"   // near its end, or used up
	RepairRule    = "dragoman.repair.rule"
	ApprovalState = "dragoman.approval.verdict"
	ToolsState    = "dragoman.tools.state" // offered or quarantined
	Queue         = "dragoman.queue"
	RunState      = "dragoman.run.state"       // ready, running or waiting
	StoreKind     = "dragoman.store.operation" // read or write
	Outcome       = "dragoman.outcome"         // ok or refused
	Waited        = "dragoman.waited"          // seconds
	QuestionKind  = "dragoman.question.kind"
	ToolOriginal  = "dragoman.tool.original" // as its server calls it
)

// Values that are said by more than one.
const (
	OpChat        = "chat"
	OpInvokeAgent = "invoke_agent"
	OpExecuteTool = "execute_tool"
	TokenInput    = "input"
	TokenOutput   = "output"
	ToolError     = "tool_error" // error.type of a tool that said that it failed
	Other         = "_other"     // in place of a name that anybody could have made up
	Agent         = "dragoman"   // what we are called among agents
)

// Events of spans, beside the names of counters.
const (
	EventGate      = "dragoman.gate"
	EventApproval  = "dragoman.approval.wait"
	EventQueue     = "dragoman.queue.wait"
	EventReconnect = "dragoman.reconnect"
	EventAgain     = "dragoman.call.again"
)

// Metrics.
const (
	ChatDuration      = "gen_ai.client.operation.duration"
	ChatTokens        = "gen_ai.client.token.usage"
	ChatFirstChunk    = "gen_ai.client.operation.time_to_first_chunk"
	ChatNextChunk     = "gen_ai.client.operation.time_per_output_chunk"
	ToolDuration      = "gen_ai.execute_tool.duration"
	AgentDuration     = "gen_ai.invoke_agent.duration"
	AgentChats        = "gen_ai.invoke_agent.inference_calls"
	AgentTools        = "gen_ai.invoke_agent.tool_calls"
	MCPClientDuration = "mcp.client.operation.duration"
	MCPServerDuration = "mcp.server.operation.duration"
	MCPClientSession  = "mcp.client.session.duration"
	MCPServerSession  = "mcp.server.session.duration"
	HTTPDuration      = "http.server.request.duration"

	ServerUp       = "dragoman.server.up"
	Tools          = "dragoman.tools"
	Repairs        = "dragoman.arguments.repairs"
	Truncated      = "dragoman.results.truncated"
	Approvals      = "dragoman.approvals"
	UnknownOutcome = "dragoman.calls.unknown_outcome"
	LimitRefusals  = "dragoman.limit.refusals"
	Budgets        = "dragoman.budgets"
	OpenStreams    = "dragoman.streams.open"
	StoreDuration  = "dragoman.store.operation.duration"
	QueueLength    = "dragoman.queue.length"
	Reloads        = "dragoman.configuration.reloads"
	Runs           = "dragoman.runs"
	Replicas       = "dragoman.replicas"

	GoMemoryUsed      = "go.memory.used"
	GoMemoryAllocated = "go.memory.allocated"
	GoMemoryGoal      = "go.memory.gc.goal"
	GoGoroutines      = "go.goroutine.count"
	GoProcessors      = "go.processor.limit"
)

// A Shape is how a metric is measured.
type Shape string

// The shapes.
const (
	Counter   Shape = "counter"
	Gauge     Shape = "gauge"
	Histogram Shape = "histogram"
)

// A Metric is one of [Metrics].
type Metric struct {
	Name  string
	Shape Shape
	// Unit is one of UCUM: s, By, or one in braces, such as {token}, that only tells.
	Unit string
	// Attributes are all that it ever has, each with few values.
	Attributes []string
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
	Doc     string
}

// Buckets, as the conventions have them.
var (
	modelSeconds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokens       = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	mcpSeconds   = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	httpSeconds  = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	counts       = []float64{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64}
	longSeconds  = []float64{1, 10, 60, 600, 3600, 21600, 86400, 604800}
	storeSeconds = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}
)

// Metrics are all that there are.
var Metrics = []Metric{
	{ChatDuration, Histogram, "s", []string{OperationName, ProviderName, RequestModel, ServerAddress, ErrorType}, modelSeconds, "Messages of models, from the request to the last byte."},
	{ChatTokens, Histogram, "{token}", []string{OperationName, ProviderName, RequestModel, ServerAddress, TokenType}, tokens, "Tokens of one message of a model, as its API says."},
	{ChatFirstChunk, Histogram, "s", []string{OperationName, ProviderName, RequestModel, ServerAddress}, modelSeconds, "Time to the first piece of a message that is streamed."},
	{ChatNextChunk, Histogram, "s", []string{OperationName, ProviderName, RequestModel, ServerAddress}, modelSeconds, "Time from one piece of a message that is streamed to the next."},
	{ToolDuration, Histogram, "s", []string{ToolName, Server, ErrorType}, mcpSeconds, "Calls of tools, with all that is between a model and the tool."},
	{AgentDuration, Histogram, "s", []string{AgentName, ErrorType}, modelSeconds, "Conversations, from the first request to the last byte."},
	{AgentChats, Histogram, "1", []string{AgentName}, counts, "Messages of a model in one conversation."},
	{AgentTools, Histogram, "1", []string{AgentName}, counts, "Calls of tools in one conversation."},
	{MCPClientDuration, Histogram, "s", []string{MethodName, ToolName, Server, ErrorType, ProtocolVersion, Transport}, mcpSeconds, "Requests to MCP servers."},
	{MCPServerDuration, Histogram, "s", []string{MethodName, ToolName, ErrorType, ProtocolVersion, Transport}, mcpSeconds, "Requests of MCP clients."},
	{MCPClientSession, Histogram, "s", []string{Server, ErrorType}, longSeconds, "Sessions with MCP servers, when they end."},
	{MCPServerSession, Histogram, "s", []string{ProtocolVersion, Transport}, longSeconds, "Sessions of legacy MCP clients, when they end, at the replica where they began."},
	{HTTPDuration, Histogram, "s", []string{HTTPMethod, HTTPRoute, HTTPStatus, ErrorType}, httpSeconds, "Requests over HTTP, to the last byte of the answer."},

	{ServerUp, Gauge, "", []string{Server}, nil, "1 for an MCP server that is connected, 0 for one that is not."},
	{Tools, Gauge, "{tool}", []string{Server, ToolsState}, nil, "Tools of MCP servers, offered and quarantined."},
	{Repairs, Counter, "{repair}", []string{RepairRule, RequestModel}, nil, "Repairs of arguments that models wrote, by rule."},
	{Truncated, Counter, "{result}", []string{ToolName, Server}, nil, "Results that were cut before a model read them."},
	{Approvals, Counter, "{approval}", []string{ApprovalState}, nil, "Approvals that were asked for, by what came of them."},
	{UnknownOutcome, Counter, "{call}", []string{ToolName, Server}, nil, "Calls of which nobody knows whether they ran."},
	{LimitRefusals, Counter, "{call}", []string{Limit}, nil, "What a limit or a budget of the configuration refused."},
	{Budgets, Gauge, "{count}", []string{Budget, BudgetState}, nil, "Counts of budgets that are near their end, and used up, as far as their callers came by here."},
	{OpenStreams, Gauge, "{request}", nil, nil, "Requests over HTTP that are being answered."},
	{StoreDuration, Histogram, "s", []string{StoreKind}, storeSeconds, "Transactions of the store, with the wait for their turn."},
	{QueueLength, Gauge, "{call}", []string{Queue}, nil, "What waits: calls for a turn at a server, by its label; writes for the store (store:); and what replicas say to each other, of all of them (mail:)."},
	{Runs, Gauge, "{run}", []string{RunState}, nil, "Responses in the background that have not ended, of all replicas on the store."},
	{Replicas, Gauge, "{process}", nil, nil, "Processes that serve on the store, this one included, as far as it knows."},
	{Reloads, Counter, "{reload}", []string{Outcome}, nil, "Configurations that were read again."},

	{GoMemoryUsed, Gauge, "By", []string{MemoryType}, nil, "Memory that Go's runtime uses."},
	{GoMemoryAllocated, Counter, "By", nil, nil, "Memory that was allocated on the heap since the start."},
	{GoMemoryGoal, Gauge, "By", nil, nil, "Size of the heap at which it is collected next."},
	{GoGoroutines, Gauge, "{goroutine}", nil, nil, "Goroutines."},
	{GoProcessors, Gauge, "{thread}", nil, nil, "Threads that run Go code at a time."},
}

// Method returns what a method of MCP is called outside: its name, or [Other] for one that
// anybody could have made up.
func Method(name string) string {
	switch name {
	case "initialize", "ping", "server/discover", "logging/setLevel", "completion/complete", "subscriptions/listen",
		"tools/list", "tools/call", "prompts/list", "prompts/get", "skills/list", "skills/get",
		"resources/list", "resources/read", "resources/templates/list", "resources/directory/read", "resources/subscribe", "resources/unsubscribe",
		"tasks/get", "tasks/result", "tasks/list", "tasks/update", "tasks/cancel":
		return name
	}
	return Other
}

package demo

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

var restaurantTool = toolkit.Tool{
	Name:  "find_restaurant",
	Title: "Restaurant finder (找餐厅)",
	Description: `Finds restaurants (餐厅, 饭店, 美食) in one city, best rated first, optionally of one cuisine
		(菜系) only. Returns name, cuisine, rating, address and price level of each. An empty list means that
		nothing matches: leave the cuisine out, or try another city. Example: 成都有什么好吃的川菜馆?`,
	Hints: lookup,
	Examples: []toolkit.Example{
		{Ask: "成都有什么好吃的川菜馆?", Arguments: `{"city":"成都","cuisine":"川菜"}`},
		{Ask: "Where can I eat in Rome?", Arguments: `{"city":"Rome"}`},
	},
}

type restaurantQuery struct {
	City    string `json:"city" desc:"City to search in, in English or Chinese (城市), e.g. Chengdu or 成都" min:"1" max:"100" example:"Chengdu"`
	Cuisine string `json:"cuisine,omitempty" desc:"Kind of cooking, in English or Chinese (菜系), e.g. Sichuan, Italian or 粤菜. Optional; all kinds if left out." max:"100"`
}

type restaurant struct {
	Name    string  `json:"name" desc:"Name (店名)" md:"name"`
	Cuisine string  `json:"cuisine" desc:"Kind of cooking (菜系)"`
	Rating  float64 `json:"rating" desc:"Guests' rating, 5 is best (评分)" min:"0" max:"5"`
	Address string  `json:"address" desc:"Street and district (地址)"`
	Price   string  `json:"price" desc:"Price level, $ is cheap (价位)" enum:"$,$$,$$$,$$$$"`
}

type restaurants struct {
	City        string       `json:"city" desc:"The city that was searched (城市)"`
	Restaurants []restaurant `json:"restaurants" desc:"Best rated first; empty if nothing matches (餐厅列表)"`
	Total       int          `json:"total" desc:"Number of restaurants (数量)" min:"0"`
}

func findRestaurant(_ context.Context, args restaurantQuery) (restaurants, error) {
	chinese := isChinese(args.City)
	found := restaurants{City: args.City}
	if c, ok := findCity(args.City); ok {
		found.City = c.in(chinese)
		for _, v := range venues {
			if v.city != c.en || !v.cuisine.serves(args.Cuisine) {
				continue
			}
			found.Restaurants = append(found.Restaurants, restaurant{
				v.in(chinese), v.cuisine.in(chinese), v.rating, v.address.in(chinese), v.price,
			})
		}
	}
	slices.SortStableFunc(found.Restaurants, func(a, b restaurant) int { return cmp.Compare(b.Rating, a.Rating) })
	found.Total = len(found.Restaurants)
	return found, nil
}

// A cuisine is a kind of cooking and the wider kinds it belongs to.
type cuisine struct {
	name
	also string // space-separated
}

// serves tells whether a guest who asks for want is right here: "Chinese" finds
// Sichuan food, and so does "sichuan restaurant". No wish is served everywhere.
func (c cuisine) serves(want string) bool {
	want = fold(want)
	if want == "" {
		return true
	}
	for _, known := range append(strings.Fields(c.also), c.en, c.zh, strings.TrimSuffix(c.zh, "菜")) {
		if strings.Contains(want, fold(known)) {
			return true
		}
	}
	return false
}

var (
	pekingese = cuisine{name{"Beijing", "京菜"}, "Chinese 中国菜 中餐 北京菜 烤鸭 duck"}
	sichuan   = cuisine{name{"Sichuan", "川菜"}, "Chinese Szechuan 中国菜 中餐 四川 火锅 hotpot"}
	cantonese = cuisine{name{"Cantonese", "粤菜"}, "Chinese 中国菜 中餐 广东 早茶 点心 dimsum"}
	jiangnan  = cuisine{name{"Jiangzhe", "江浙菜"}, "Chinese 中国菜 中餐 上海菜 本帮 杭帮 Shanghainese"}
	noodles   = cuisine{name{"Noodles", "面食"}, "Chinese 中国菜 中餐 面条 陕西 noodle Shaanxi"}
	vegan     = cuisine{name{"Vegetarian", "素食"}, "vegan 素菜"}
	italian   = cuisine{name{"Italian", "意大利菜"}, "pizza pasta 西餐 披萨"}
	french    = cuisine{name{"French", "法国菜"}, "法餐 西餐 bistro"}
	japanese  = cuisine{name{"Japanese", "日本料理"}, "日料 日本菜 寿司 sushi ramen"}
	indian    = cuisine{name{"Indian", "印度菜"}, "curry 咖喱"}
	hawker    = cuisine{name{"Singaporean", "新加坡菜"}, "Malay hawker 小贩"}
	british   = cuisine{name{"British", "英国菜"}, "pub 西餐"}
	diner     = cuisine{name{"American", "美国菜"}, "burger diner 西餐 汉堡"}
)

// A venue is one restaurant. All of them are made up.
type venue struct {
	city string // English name
	name
	cuisine cuisine
	rating  float64
	address name
	price   string
}

var venues = []venue{
	{"Beijing", name{"Red Gate Roast Duck", "朱门烤鸭店"}, pekingese, 4.7, name{"18 Drum Tower Street, Dongcheng", "东城区鼓楼大街18号"}, "$$$"},
	{"Beijing", name{"Pepper Courtyard", "椒麻小院"}, sichuan, 4.5, name{"6 Willow Hutong, Xicheng", "西城区柳树胡同6号"}, "$$"},
	{"Beijing", name{"Grandma's Noodle Board", "姥姥的面案"}, noodles, 4.3, name{"102 North Lake Road, Haidian", "海淀区北湖路102号"}, "$"},
	{"Beijing", name{"Trattoria Ginkgo", "银杏意餐"}, italian, 4.4, name{"33 Sunrise Park Road, Chaoyang", "朝阳区朝阳公园路33号"}, "$$$"},
	{"Beijing", name{"Quiet Bamboo", "静竹素食"}, vegan, 4.6, name{"9 Bell Lane, Dongcheng", "东城区钟楼巷9号"}, "$$"},
	{"Shanghai", name{"River Bend Kitchen", "江湾本帮菜"}, jiangnan, 4.6, name{"88 Plane Tree Road, Xuhui", "徐汇区梧桐路88号"}, "$$"},
	{"Shanghai", name{"Pier Nine Bistro", "九号码头小馆"}, french, 4.5, name{"9 Old Wharf Road, Huangpu", "黄浦区老码头路9号"}, "$$$$"},
	{"Shanghai", name{"Sushi Tsuki", "月寿司"}, japanese, 4.4, name{"27 Garden Lane, Jing'an", "静安区花园弄27号"}, "$$$"},
	{"Guangzhou", name{"Morning Tea House", "晨光茶楼"}, cantonese, 4.8, name{"1 Riverside West Road, Liwan", "荔湾区沿江西路1号"}, "$$"},
	{"Shenzhen", name{"Harbour Steam", "海港蒸品"}, cantonese, 4.4, name{"56 Bay Avenue, Nanshan", "南山区海湾大道56号"}, "$$"},
	{"Hangzhou", name{"Lotus by the Lake", "湖畔荷香"}, jiangnan, 4.7, name{"20 Willow Causeway, Xihu", "西湖区柳堤20号"}, "$$$"},
	{"Chengdu", name{"Nine Bowls", "九大碗"}, sichuan, 4.8, name{"15 Wide Alley, Qingyang", "青羊区宽巷15号"}, "$$"},
	{"Chengdu", name{"Boiling River Hotpot", "沸江火锅"}, sichuan, 4.6, name{"77 South Ring Road, Wuhou", "武侯区南环路77号"}, "$$"},
	{"Chengdu", name{"Panda Slice", "熊猫披萨"}, italian, 4.0, name{"3 Tech Park Road, Gaoxin", "高新区科园路3号"}, "$"},
	{"Xi'an", name{"City Wall Noodles", "城墙根面馆"}, noodles, 4.7, name{"41 South Gate Street, Beilin", "碑林区南门街41号"}, "$"},
	{"Hong Kong", name{"Jade Steamer", "翡翠蒸笼"}, cantonese, 4.7, name{"12 Hillside Terrace, Central", "中环山坡台12号"}, "$$$"},
	{"Tokyo", name{"Ramen Hoshi", "星拉面"}, japanese, 4.6, name{"2-8 Station Front, Shinjuku", "新宿站前2-8"}, "$"},
	{"Singapore", name{"Nutmeg Lane", "肉豆蔻巷"}, hawker, 4.6, name{"5 Spice Road", "香料路5号"}, "$"},
	{"Mumbai", name{"Monsoon Table", "季风餐桌"}, indian, 4.5, name{"64 Sea Face, Bandra", "班德拉海滨64号"}, "$$"},
	{"Rome", name{"Da Nonna Pia", "皮娅奶奶家"}, italian, 4.8, name{"Vicolo del Forno 7", "烤炉巷7号"}, "$$"},
	{"Paris", name{"Le Petit Zinc", "小锌吧"}, french, 4.6, name{"31 rue des Tilleuls", "椴树街31号"}, "$$$"},
	{"London", name{"The Copper Kettle", "铜壶酒馆"}, british, 4.2, name{"19 Fishmonger Row", "鱼贩街19号"}, "$$"},
	{"London", name{"Saffron Station", "藏红花车站"}, indian, 4.6, name{"240 Mill Lane", "磨坊巷240号"}, "$$"},
	{"New York", name{"Corner Booth", "街角卡座"}, diner, 4.3, name{"501 W 20th Street", "西20街501号"}, "$"},
	{"San Francisco", name{"Fog City Vegan", "雾都素食"}, vegan, 4.5, name{"88 Hill Street", "山丘街88号"}, "$$"},
}

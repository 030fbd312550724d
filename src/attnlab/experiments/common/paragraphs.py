"""Some pages of plain English, written for attnlab: what the experiments with real embeddings read."""

PARAGRAPHS = (
    "Tokens are particles, a layer is a step in time, and attention is the force between them. Where do they go, and who "
    "leads the way? The cat sat on the mat because it was tired, and the river carried the old bridge down to the sea.",
    "My grandmother kept bees behind the garden wall. Every morning in June she lifted the lids of the three hives, counted "
    "frames, and wrote the numbers in a green notebook with a pencil that hung from a string. She never wore gloves. When one "
    "of us was stung, she scraped the sting away with her thumb, put a slice of onion on the spot, and told us that a bee "
    "which stings has lost an argument.",
    "The train to the coast left at seven, half empty. A man in a wet coat unfolded a map so large that it covered the window, "
    "and asked the girl beside him which of the two islands had the lighthouse. Neither, she said: the lighthouse fell in the "
    "storm of last winter, and ships now steer by the lamp of the bakery.",
    "To make a simple bread, mix five hundred grams of flour with a spoon of salt and a little yeast. Add warm water and "
    "stir until no dry flour is left. Cover the bowl and let it rest for two hours; fold the dough twice, shape a loaf, and "
    "bake it in a very hot oven until the crust is dark. Wait before you cut it, if you can.",
    "A glacier looks still, yet it flows. Snow falls on the upper part, turns to ice under its own weight, and creeps "
    "downhill a few metres each year, faster in the middle than at the sides, where rock holds it back. Stones that fell on "
    "it long ago come out at the tongue in the order in which they fell, so that a walker reads there a calendar of old "
    "avalanches.",
    "The committee met on Tuesday and could not agree. Four members wanted a new school, three preferred to repair the roof "
    "of the old one, and the treasurer, who had brought the accounts in two heavy boxes, said that there was money for "
    "neither. After midnight they voted to ask the children. The children asked for a swimming pool, and then for a library.",
    "Light from the nearest star beyond the sun needs more than four years to reach us. If somebody there watches our world "
    "through a good telescope, they see the news of an earlier season: elections that are long decided, harvests that have "
    "been eaten, a bridge before it was painted. What we call the present is a small room with very thin walls.",
    "He learned the violin late, at forty, from a teacher half his age. For the first year his neighbours closed their "
    "windows. In the second they left them open now and then. When he moved away in the fourth, an old woman whom he had "
    "never met rang at the door, gave him a jar of plums, and asked who would play in the evenings from now on.",
    "The software failed only on Fridays. Engineers searched the code for dates, for clocks and for anything that counted "
    "to seven; they found nothing. At last a cleaner noticed that on Fridays the sun came through the west window, warmed "
    "the small machine under the desk, and made its fan so loud that the guard pulled the plug to hear his radio.",
    "Most rivers of this country run north, but the smallest one turns south behind the quarry, crosses the wheat fields, "
    "and disappears below a limestone hill. Farmers once poured red dye into the hole to learn where it goes. Nine days "
    "later the fountain in the market square of the next town turned pink, on the morning of a wedding.",
    "A good question is a kind of tool. It should be small enough to hold in one hand and hard enough to keep its edge. "
    "Children make such tools all day long and leave them lying about the house: why is the moon not falling, who named the "
    "colours, where was I before? Adults step over them, or put them into drawers, and complain of having nothing to cut with.",
    "On the last day of the harvest the whole village ate at one table. It stood in the street, made of doors that had been "
    "taken off their hinges, and everybody could tell by the keyholes at whose door they sat. There were lentils, roast "
    "peppers, and a cake with too much sugar. When it began to rain nobody moved; they only covered the bread.",
    "The museum owns a clock that has only one hand. It was built for monks who did not need minutes, and it loses a quarter "
    "of an hour each day, which the keeper gives back at noon by turning the wheel with his finger. Visitors laugh at it. "
    "Then they stand before it a little longer than before any of the paintings, and most of them look at their wrists.",
    "Nobody knows who planted the oak at the crossroads. It stands on no old map and in no deed, and when surveyors drew the "
    "line between the two counties they bent it round the trunk, since neither side would have it felled. Owls live in the "
    "upper branches, bicycles lean below, and letters for people without an address are pinned to the bark with a nail.",
)  # fmt: skip

//! Names, places and phone numbers of people, by country.

use super::Roll;

/// Matching given and family names, with the country's phone format (`#` is a digit).
struct Country {
    given: &'static [&'static str],
    family: &'static [&'static str],
    phone: &'static str,
    cities: &'static [(&'static str, &'static str)],
    streets: &'static [&'static str],
}

const COUNTRIES: &[Country] = &[
    Country {
        given: &["João", "Ana", "Luíza", "Antônio", "Conceição", "Thiago", "Márcia", "Zé"],
        family: &["da Silva", "Gonçalves", "Araújo", "de Souza e Sá", "Muniz", "Magalhães"],
        phone: "55119########",
        cities: &[("São Paulo", "SP"), ("Ribeirão Preto", "SP"), ("Florianópolis", "SC"), ("Belém", "PA")],
        streets: &["Rua das Acácias", "Av. Paulista", "Praça da Sé"],
    },
    Country {
        given: &["Lucía", "Íñigo", "José María", "Ximena", "Ángel"],
        family: &["Núñez", "García Márquez", "Ibáñez", "O'Higgins", "Peña"],
        phone: "5411########",
        cities: &[("Córdoba", "X"), ("Bogotá", "DC"), ("Mérida", "YUC")],
        streets: &["Calle 8", "Av. Corrientes", "Paseo de la Reforma"],
    },
    Country {
        given: &["Zoë", "Liam", "Mary-Jane", "Siobhán", "D'Andre"],
        family: &["O'Connor", "Smith", "McKenzie", "\"Ace\" Miller", "St. John"],
        phone: "1415#######",
        cities: &[("San Francisco", "CA"), ("Cork", "C")],
        streets: &["Market Street", "Patrick's Quay"],
    },
    Country {
        given: &["Jürgen", "Anneliese", "Björn"],
        family: &["Müller", "Weiß", "von der Straße"],
        phone: "4930#######",
        cities: &[("Köln", "NW"), ("München", "BY")],
        streets: &["Königsallee", "Straße des 17. Juni"],
    },
    Country {
        given: &["さくら", "健太", "陽子"],
        family: &["田中", "佐藤", "渡辺"],
        phone: "8190########",
        cities: &[("東京", "13"), ("大阪", "27")],
        streets: &["渋谷区神南", "北区梅田"],
    },
    Country {
        given: &["Владимир", "Юлия", "Семён"],
        family: &["Иванова", "Щербаков", "Ёлкин"],
        phone: "7916#######",
        cities: &[("Москва", "MOW"), ("Казань", "TA")],
        streets: &["ул. Ленина", "Невский пр."],
    },
    Country {
        given: &["محمد", "فاطمة"],
        family: &["الهاشمي", "بن علي"],
        phone: "9715########",
        cities: &[("دبي", "DU")],
        streets: &["شارع الشيخ زايد"],
    },
    Country {
        given: &["🌸 Mei", "小明", "Wei"],
        family: &["王", "Chen", "李 🐉"],
        phone: "86138########",
        cities: &[("上海", "SH")],
        streets: &["南京路"],
    },
];

/// A generated person.
pub struct Person {
    pub name: String,
    /// Local part of an email address: the ASCII letters of the name, or a constant word.
    pub handle: String,
    pub phone: String,
    pub city: &'static str,
    pub state: &'static str,
    pub street: &'static str,
}

/// Generates a person.
pub fn person(roll: &mut Roll) -> Person {
    let country = roll.pick(COUNTRIES);
    let (given, family) = (*roll.pick(country.given), *roll.pick(country.family));
    let name = format!("{given} {family}");
    let mut handle: String =
        name.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_lowercase();
    if handle.len() < 3 {
        "client".clone_into(&mut handle);
    }
    let phone = country.phone.chars().map(|c| if c == '#' { roll.digit() } else { c }).collect();
    let (city, state) = *roll.pick(country.cities);
    Person { name, handle, phone, city, state, street: roll.pick::<&str>(country.streets) }
}

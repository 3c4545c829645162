//! What gives types their form in BARE. Each takes a type apart in a pattern that names every field, or matches every variant: the compiler
//! refuses one that is left out.

/// A type that is told and said: `record!(Exec { code, file | terms })`. The fields stand in the order of the message; those of the last one
/// stand in the place of itself, as they do in JSON. `field = "name"` names one otherwise than Rust does.
macro_rules! record {
    ($name:ident { $($field:ident $(= $called:literal)?),* $(| $flat:ident)? $(; without $($later:ident),+)? }) => {
        $crate::bare::told!($name { $($field $(= $called)?),* $(| $flat)? $(; without $($later),+)? });

        impl $crate::bare::Decode for $name {
            fn decode(
                from: &mut $crate::bare::Reader<'_>,
            ) -> Result<Self, $crate::bare::Malformed> {
                Ok(Self {
                    $($field: $crate::bare::Decode::decode(from)?,)*
                    $($flat: $crate::bare::Decode::decode(from)?,)?
                    $($($later: Default::default(),)+)?
                })
            }
        }
    };
}

/// A type that is only told, in the same words. What is behind `; without` came later than this version and is in JSON alone.
macro_rules! told {
    ($name:ident $(<$life:lifetime>)? {
        $($field:ident $(= $called:literal)?),* $(| $flat:ident)? $(; without $($later:ident),+)?
    }) => {
        impl $(<$life>)? $crate::bare::Fields for $name $(<$life>)? {
            fn fields(schema: &mut $crate::bare::Schema) -> Vec<$crate::bare::Field> {
                #[allow(unused_mut, reason = "only one with a last field of that kind changes it")]
                let mut fields = vec![
                    $({
                        let called = [$($called,)? stringify!($field)][0];
                        $crate::bare::field(called, |it: &Self| &it.$field, schema)
                    },)*
                ];
                $(fields.extend($crate::bare::flattened(|it: &Self| &it.$flat, schema));)?
                fields
            }
        }

        impl $(<$life>)? $crate::bare::Shape for $name $(<$life>)? {
            fn shape(schema: &mut $crate::bare::Schema) -> String {
                schema.define_struct::<Self>(stringify!($name))
            }
        }

        impl $(<$life>)? $crate::bare::Encode for $name $(<$life>)? {
            fn encode(&self, to: &mut Vec<u8>) {
                let Self { $($field,)* $($flat,)? $($($later: _,)+)? } = self;
                $($crate::bare::Encode::encode($field, to);)*
                $($crate::bare::Encode::encode($flat, to);)?
            }
        }
    };
}

/// One of several: `choice!(Severity { Error, Warning })`, numbered from 0. What is behind `;` came later than this version, and is told as
/// another.
macro_rules! choice {
    ($name:ident { $($variant:ident $(($inner:pat))?),* $(,)? $(; $later:ident as $told:ident)? }) => {
        impl $crate::bare::Shape for $name {
            fn shape(schema: &mut $crate::bare::Schema) -> String {
                schema.define_enum::<Self>(stringify!($name), &[$(stringify!($variant)),*])
            }
        }

        impl $crate::bare::Encode for $name {
            fn encode(&self, to: &mut Vec<u8>) {
                enum Place { $($variant),* }
                let place = match self {
                    $(Self::$variant $(($inner))? => Place::$variant,)*
                    $(Self::$later => Place::$told,)?
                };
                $crate::bare::Encode::encode(&(place as u64), to);
            }
        }
    };
}

pub(crate) use {choice, record, told};

//! JSON encoding for types of the public contract inside a body. Their serde form omits or flattens fields,
//! which postcard does not support.

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that is encoded as JSON text.
#[derive(Debug, PartialEq)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> Serialize for Json<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&serde_json::to_string(&self.0).map_err(S::Error::custom)?)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Json<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        serde_json::from_str(&text).map(Self).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use doppel_contract::RebalanceRequest;
    use doppel_contract::answer::Advice;

    use super::*;

    #[test]
    fn what_leaves_fields_out_comes_back_as_it_was() {
        let advice = Advice::unknown("http://a.example/".to_owned());
        let bytes = postcard::to_allocvec(&(Json(&advice), 7_u8)).unwrap();
        assert_eq!(postcard::from_bytes::<(Json<Advice>, u8)>(&bytes).unwrap(), (Json(advice), 7));
        let bytes = postcard::to_allocvec(&Json(RebalanceRequest::Balance)).unwrap();
        assert_eq!(
            postcard::from_bytes::<Json<RebalanceRequest>>(&bytes).unwrap(),
            Json(RebalanceRequest::Balance)
        );
    }

    #[test]
    fn a_figure_comes_back_to_its_last_digit() {
        for (shared, union) in (2..200_u32).flat_map(|union| (1..union).map(move |shared| (shared, union))) {
            let figure = f64::from(shared) / f64::from(union);
            let bytes = postcard::to_allocvec(&Json(figure)).unwrap();
            let Json(back) = postcard::from_bytes::<Json<f64>>(&bytes).unwrap();
            assert_eq!(figure.to_bits(), back.to_bits(), "{shared} of {union}");
        }
    }
}
